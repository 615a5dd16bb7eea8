# What the install tests install has to be built before.
foreach(target IN ITEMS flhal flhal-probe flhal-info flhal-conformance flhal-replay flhal-kernels flhal_plugin_ram flhal_plugin_mock flhal_plugin_host scan_one)
  if(TARGET ${target})
    add_dependencies(test_install ${target})
  endif()
endforeach()
# A sanitizer's runtime must be in the program that uses sanitized libraries.
if(FLHAL_SANITIZE)
  target_compile_definitions(test_install PRIVATE FLHAL_TEST_C_FLAGS="-fsanitize=${FLHAL_SANITIZE}")
else()
  target_compile_definitions(test_install PRIVATE FLHAL_TEST_C_FLAGS="")
endif()
