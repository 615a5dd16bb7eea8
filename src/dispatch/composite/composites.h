// src/dispatch/composite/composites.h: the composites by name; table.cc says which op each is for.
#pragma once

#include "dispatch/composite/builder.h"

namespace flhal::composite {

void softmax(Builder&);
void log_softmax(Builder&);
void softmax_backward(Builder&);
void log_softmax_backward(Builder&);
void layer_norm(Builder&);
void square(Builder&);
void reciprocal(Builder&);
void rsqrt(Builder&);
void silu(Builder&);
void relu(Builder&);
void addcmul(Builder&);
void addcdiv(Builder&);
void lerp(Builder&);
void clamp(Builder&);
void masked_fill(Builder&);
void mean(Builder&);
void norm2(Builder&);
void var(Builder&);
void cat(Builder&);

}  // namespace flhal::composite
