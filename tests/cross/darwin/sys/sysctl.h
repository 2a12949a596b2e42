#include "../mach/mach.h"
