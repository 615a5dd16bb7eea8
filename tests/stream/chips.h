// tests/stream/chips.h: the same chips as in tests/memory.
#pragma once
#include "memory/chips.h"
