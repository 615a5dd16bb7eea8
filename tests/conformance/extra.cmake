# The plugin every_op, away from those that tests of loading see; and the runs of the suite that the tests look at.
block(SCOPE_FOR VARIABLES)
  set(FLHAL_PLUGIN_FOLDER ${CMAKE_BINARY_DIR}/tests/conformance.d)
  set(template ${CMAKE_SOURCE_DIR}/sdk/template)
  flhal_add_plugin(every_op SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/conformance/plugin/every_op.cc ${template}/device.c ${template}/memory.c PROFILE sync)
  target_include_directories(flhal_plugin_every_op PRIVATE ${template})
  target_link_libraries(flhal_plugin_every_op PRIVATE flhal_kernels)
endblock()
add_dependencies(test_conformance flhal-conformance flhal_plugin_every_op)
target_compile_definitions(test_conformance PRIVATE FLHAL_TEST_CONFORMANCE="$<TARGET_FILE:flhal-conformance>"
  FLHAL_TEST_EVERY_OP="${CMAKE_BINARY_DIR}/tests/conformance.d/libflhal_plugin_every_op.so")
add_test(NAME conformance_every_op COMMAND flhal-conformance --quiet --time-factor 5 --profile sync,ops
  --plugin ${CMAKE_BINARY_DIR}/tests/conformance.d/libflhal_plugin_every_op.so)
set_tests_properties(conformance_every_op PROPERTIES TIMEOUT 300)
