# exit_with_work: a program that ends with calls queued; tests run it in a fresh process.
flhal_test_helper(exit_with_work ${CMAKE_CURRENT_LIST_DIR}/exit_with_work.c)
add_dependencies(test_worker exit_with_work)
