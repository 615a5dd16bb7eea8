# The same tests at each lower instruction set level. A level the machine lacks leaves the best one in place.
foreach(level IN ITEMS base v3)
  add_test(NAME kernels_${level} COMMAND test_kernels)
  set_tests_properties(kernels_${level} PROPERTIES TIMEOUT 300 ENVIRONMENT "FLHAL_TEST_KERNEL_LEVEL=${level}")
endforeach()

# The same tests once more through the OpenCL C texts, in both schedules, where a driver and its headers are installed.
find_package(OpenCL QUIET)
if(OpenCL_FOUND)
  target_compile_definitions(test_kernels PRIVATE FLHAL_TEST_OPENCL=1)
  target_link_libraries(test_kernels PRIVATE OpenCL::OpenCL)
  foreach(schedule IN ITEMS fat thin)
    add_test(NAME kernels_opencl_${schedule} COMMAND test_kernels ~[levels])
    set_tests_properties(kernels_opencl_${schedule} PROPERTIES TIMEOUT 1800 ENVIRONMENT "FLHAL_TEST_KERNEL_DIALECT=opencl-${schedule}")
  endforeach()
  # The register tiles of other machines, on this one.
  foreach(bytes IN ITEMS 16 64)
    add_test(NAME kernels_opencl_vectors_${bytes} COMMAND test_kernels [matmul],[conv])
    set_tests_properties(kernels_opencl_vectors_${bytes} PROPERTIES TIMEOUT 1800
      ENVIRONMENT "FLHAL_TEST_KERNEL_DIALECT=opencl-fat;FLHAL_TEST_KERNEL_VECTOR_BYTES=${bytes}")
  endforeach()
endif()

# And interpreted, where Oclgrind is installed: one case in many (every one takes hours: oclgrind.sh by hand).
find_program(OCLGRIND oclgrind)
if(OpenCL_FOUND AND OCLGRIND)
  foreach(schedule IN ITEMS fat thin)
    add_test(NAME kernels_oclgrind_${schedule} COMMAND ${CMAKE_CURRENT_LIST_DIR}/oclgrind.sh ${schedule} $<TARGET_FILE:test_kernels>)
    set_tests_properties(kernels_oclgrind_${schedule} PROPERTIES TIMEOUT 1800 ENVIRONMENT "FLHAL_TEST_KERNEL_FEW=1")
  endforeach()
endif()
