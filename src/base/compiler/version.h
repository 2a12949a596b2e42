// TT_COMPILER: the compiler's name and version, a text.
#pragma once

#if defined(__clang__)
#define TT_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define TT_COMPILER "gcc " __VERSION__
#else
#define TT_TEXT_OF(x) #x
#define TT_VALUE_TEXT(x) TT_TEXT_OF(x)
#define TT_COMPILER "MSVC " TT_VALUE_TEXT(_MSC_FULL_VER)
#endif
