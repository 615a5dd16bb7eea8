# core_one: a program that tests run in a fresh process, with an environment of its own.
flhal_test_helper(core_one ${CMAKE_CURRENT_LIST_DIR}/core_one.c)
add_dependencies(test_core core_one flhal_hostile flhal-info)
target_include_directories(test_core PRIVATE ${CJSON_INCLUDE})
target_compile_definitions(test_core PRIVATE FLHAL_TEST_INFO="$<TARGET_FILE:flhal-info>")
set_tests_properties(core PROPERTIES TIMEOUT 600)
