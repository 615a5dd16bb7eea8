// reference_plugins/opencl/icd_files.h: the files by which the ICD loader finds drivers, looked over for broken ones.
//
// A loader passes over a file whose library is missing without a word, and the user is left with a chip that is not there.
#pragma once

#include <string>

namespace flhal::opencl {

// Where the loader looks: "/etc/OpenCL/vendors", or what the environment says instead.
std::string icd_places();

// One sentence about the files that name a library which cannot be opened (at most three are named); "" when all are well.
std::string broken_icd_files();

}  // namespace flhal::opencl
