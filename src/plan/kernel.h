// Plans use the kernel signature and item sizes of core.
#pragma once

#include "core/kernel.h"
