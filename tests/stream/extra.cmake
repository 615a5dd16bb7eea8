# The random programs of truth_test.cc alone run for 300 seconds in make test-full.
set_tests_properties(stream PROPERTIES TIMEOUT 900)
