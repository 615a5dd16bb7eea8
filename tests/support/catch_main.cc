// tests/support/catch_main.cc: Catch2's implementation and main(), compiled once for all test programs.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
