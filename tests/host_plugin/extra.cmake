# The tests call the plugin's table themselves; they need its library and the thread pool it uses.
if(TARGET flhal_plugin_host)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  add_dependencies(test_host_plugin flhal_plugin_host)
  target_link_libraries(test_host_plugin PRIVATE OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS})
  target_compile_definitions(test_host_plugin PRIVATE FLHAL_TEST_HOST_PLUGIN="$<TARGET_FILE:flhal_plugin_host>")
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
