# The tests call the plugin's table themselves; they need its library and the thread pool it uses.
if(TARGET flhal_plugin_host)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  add_dependencies(test_host_plugin flhal_plugin_host)
  target_link_libraries(test_host_plugin PRIVATE OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS})
  target_compile_definitions(test_host_plugin PRIVATE FLHAL_TEST_HOST_PLUGIN="$<TARGET_FILE:flhal_plugin_host>")
  # Shared objects for the dialect flhal-host-elf-1: the example's, and one that no loader takes.
  add_library(shared_kernels MODULE ${CMAKE_SOURCE_DIR}/examples/c/kernels.c ${CMAKE_CURRENT_LIST_DIR}/more_kernels.c)
  add_library(undefined_kernels MODULE ${CMAKE_CURRENT_LIST_DIR}/undefined_kernels.c)
  set_target_properties(shared_kernels undefined_kernels PROPERTIES C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/kernels.d)
  add_dependencies(test_host_plugin shared_kernels undefined_kernels)
  target_compile_definitions(test_host_plugin PRIVATE FLHAL_TEST_KERNELS="$<TARGET_FILE:shared_kernels>" FLHAL_TEST_UNDEFINED="$<TARGET_FILE:undefined_kernels>")
  # One thread pool in a process with torch, and oneDNN missing. 77: this Python has no torch.
  if(NOT Python3_EXECUTABLE)
    find_program(FLHAL_TEST_PYTHON NAMES python3)
  else()
    set(FLHAL_TEST_PYTHON ${Python3_EXECUTABLE})
  endif()
  if(FLHAL_TEST_PYTHON)
    add_test(NAME host_plugin_with_torch COMMAND ${FLHAL_TEST_PYTHON}
      ${CMAKE_CURRENT_LIST_DIR}/in_one_process_with_torch.py $<TARGET_FILE:flhal_plugin_host>)
    set_tests_properties(host_plugin_with_torch PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
  endif()
else()
  # FLHAL_BUILD_HOST_PLUGIN=OFF: there is nothing to test.
  set_target_properties(test_host_plugin PROPERTIES EXCLUDE_FROM_ALL ON)
  set_tests_properties(host_plugin PROPERTIES DISABLED ON)
endif()
