# drive: calls every slot of a plugin through core's wrapped tables; tests run it in a fresh process per wrong plugin.
flhal_test_helper(layers_program ${CMAKE_CURRENT_LIST_DIR}/drive_main/layers_program.c)
add_executable(drive ${CMAKE_CURRENT_LIST_DIR}/drive_main/drive.cc)
target_link_libraries(drive PRIVATE flhal_inside flhal_flags)
set_target_properties(drive PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/helpers)
add_dependencies(test_layers drive layers_program flhal-replay flhal_mutant)
target_compile_definitions(test_layers PRIVATE FLHAL_TEST_REPLAY="$<TARGET_FILE:flhal-replay>" FLHAL_TEST_MUTANT="$<TARGET_FILE:flhal_mutant>")
target_include_directories(test_layers PRIVATE ${CJSON_INCLUDE})
set_tests_properties(layers PROPERTIES TIMEOUT 600)

# Core's own use of the plugins, once more under validate: what it finds there is a fault of core. [unvalidated]: tests that leave a wait
# out on purpose. Warnings are measured times, of which a busy machine has many.
foreach(folder IN ITEMS memory stream worker dispatch)
  add_test(NAME ${folder}_validated COMMAND test_${folder} "~[unvalidated]")
  set_tests_properties(${folder}_validated PROPERTIES TIMEOUT 600 ENVIRONMENT "FLHAL_TEST_LAYERS=validate"
    FAIL_REGULAR_EXPRESSION "flhal error: validate: ")
endforeach()
