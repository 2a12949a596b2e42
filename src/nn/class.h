// What the generated argument structs of classes are made of.
#pragma once

#include "nn/module.h"
