// conformance/mutants/as_file.cc: what makes a mutant wrong as a file; nothing in libflhal_mutant.so itself.
#if defined(FLHAL_MUTANT_EXPORTS)
extern "C" __attribute__((visibility("default"))) int mutant_another_symbol() { return 1; }
#elif defined(FLHAL_MUTANT_UNDEFINED)
extern "C" int mutant_symbol_that_nobody_has();
extern "C" __attribute__((used)) int mutant_calls_it() { return mutant_symbol_that_nobody_has(); }
#endif
