# Tests of loading run scan_one in fresh processes, against the hostile kit.
flhal_test_helper(scan_one ${CMAKE_CURRENT_LIST_DIR}/scan_one.c)
add_dependencies(test_loading scan_one flhal_hostile)
target_include_directories(test_loading PRIVATE ${CJSON_INCLUDE})
set_tests_properties(loading PROPERTIES TIMEOUT 600)
