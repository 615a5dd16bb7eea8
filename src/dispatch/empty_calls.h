// src/dispatch/empty_calls.h: calls with an input of no elements and an output of some.
#pragma once

#include "dispatch/prepared_call.h"

namespace flhal {

Status run_with_empty_input(PreparedCall& p);
Status run_prepared(PreparedCall& p);         // run.cc: the ordinary way

}  // namespace flhal
