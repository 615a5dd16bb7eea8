# What was frozen with ABI 1.0, built once more from its frozen sources against its frozen headers: every machine has these, the
# binaries in abi/1.0/time_travel are for one. See docs/why/abi.md.
set(frozen ${CMAKE_SOURCE_DIR}/abi/1.0)
set(travel ${CMAKE_BINARY_DIR}/tests/time_travel.d)
add_library(flhal_travel_plugin MODULE ${frozen}/time_travel/plugin.c)
target_link_options(flhal_travel_plugin PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/sdk/cmake/plugin.map -Wl,-z,defs)
set_target_properties(flhal_travel_plugin PROPERTIES OUTPUT_NAME flhal_plugin_frozen LIBRARY_OUTPUT_DIRECTORY ${travel} C_VISIBILITY_PRESET hidden)
add_executable(travel_app ${frozen}/time_travel/app.c)
add_dependencies(travel_app flhal)
target_link_libraries(travel_app PRIVATE $<TARGET_FILE:flhal>)   # the file: the target would bring today's headers
add_executable(travel_core ${frozen}/time_travel/core.c)
target_link_libraries(travel_core PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(travel_app travel_core PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${travel} SKIP_BUILD_RPATH ON)
set_target_properties(travel_app PROPERTIES OUTPUT_NAME app)
set_target_properties(travel_core PROPERTIES OUTPUT_NAME core)
foreach(target IN ITEMS flhal_travel_plugin travel_app travel_core)
  target_include_directories(${target} PRIVATE ${frozen}/include)
  add_dependencies(test_time_travel ${target})
endforeach()
set_tests_properties(time_travel PROPERTIES TIMEOUT 3000)   # make test-full builds a whole core of then
