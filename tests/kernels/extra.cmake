# The same tests at each lower instruction set level. A level the machine lacks leaves the best one in place.
foreach(level IN ITEMS base v3)
  add_test(NAME kernels_${level} COMMAND test_kernels)
  set_tests_properties(kernels_${level} PROPERTIES TIMEOUT 300 ENVIRONMENT "FLHAL_TEST_KERNEL_LEVEL=${level}")
endforeach()
