# The tests call the plugin's table themselves; they need its library and the thread pool it uses.
if(TARGET flhal_plugin_host)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  add_dependencies(test_host_plugin flhal_plugin_host)
  target_link_libraries(test_host_plugin PRIVATE OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS})
  target_compile_definitions(test_host_plugin PRIVATE FLHAL_TEST_HOST_PLUGIN="$<TARGET_FILE:flhal_plugin_host>")
else()
  # FLHAL_BUILD_HOST_PLUGIN=OFF: there is nothing to test.
  set_target_properties(test_host_plugin PROPERTIES EXCLUDE_FROM_ALL ON)
  set_tests_properties(host_plugin PROPERTIES DISABLED ON)
endif()
