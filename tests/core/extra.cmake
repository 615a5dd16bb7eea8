# core_one: a program that tests run in a fresh process, with an environment of its own.
flhal_test_helper(core_one ${CMAKE_CURRENT_LIST_DIR}/core_one.c)
flhal_test_helper(settings_one ${CMAKE_CURRENT_LIST_DIR}/settings_one.c)
add_dependencies(test_core core_one settings_one flhal_hostile flhal-info)
target_include_directories(test_core PRIVATE ${CJSON_INCLUDE})
target_compile_definitions(test_core PRIVATE FLHAL_TEST_INFO="$<TARGET_FILE:flhal-info>")
set_tests_properties(core PROPERTIES TIMEOUT 600)

# LOAD-04: two plugins in two folders, each with its own library of the same soname beside it.
foreach(which IN ITEMS one two)
  add_library(flhal_dependency_${which} SHARED ${CMAKE_CURRENT_LIST_DIR}/dependent_library.c)
  add_library(flhal_dependent_${which} MODULE ${CMAKE_CURRENT_LIST_DIR}/dependent_plugin.c)
  target_compile_definitions(flhal_dependency_${which} PRIVATE WHICH="${which}")
  target_compile_definitions(flhal_dependent_${which} PRIVATE CHIP="dependent_${which}")
  target_compile_options(flhal_dependent_${which} PRIVATE -w)
  target_include_directories(flhal_dependent_${which} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(flhal_dependency_${which} PRIVATE flhal_flags)
  target_link_libraries(flhal_dependent_${which} PRIVATE flhal_dependency_${which} flhal_flags)
  set_target_properties(flhal_dependency_${which} flhal_dependent_${which} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/dependent_${which}.d BUILD_RPATH "$ORIGIN" NO_SONAME OFF)
  set_target_properties(flhal_dependency_${which} PROPERTIES OUTPUT_NAME flhal_test_dependency)
  set_target_properties(flhal_dependent_${which} PROPERTIES OUTPUT_NAME flhal_plugin_dependent_${which})
  add_dependencies(test_core flhal_dependent_${which})
endforeach()
