// Building blocks of the generated argument structs of classes.
#pragma once

#include "nn/module.h"
