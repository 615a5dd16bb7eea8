# exit_with_work: a program that ends with calls queued; tests run it in a fresh process.
flhal_test_helper(exit_with_work ${CMAKE_CURRENT_LIST_DIR}/exit_with_work.c)
add_dependencies(test_worker exit_with_work)

# The tests of ops once more, on workers: chips without queues at level 2. Left out is what asks how a call went as soon as it
# has returned: a log line, a route that withdrew.
add_test(NAME dispatch_level2 COMMAND test_dispatch "~[at_once]")
set_tests_properties(dispatch_level2 PROPERTIES TIMEOUT 600 ENVIRONMENT
  "FLHAL_TEST_ASYNC_LEVEL=2;FLHAL_TEST_MOCK=no_streams=1")
