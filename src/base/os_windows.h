// What the sources of Windows share.
#pragma once

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>

#include <errno.h>

namespace TT_NS {

// A path in UTF-16. tt's paths are UTF-8, whatever the code page of the process is.
struct WidePath {
  wchar_t text[4096];
  int error = 0;  // an errno: the path has no form in UTF-16, or one that is too long
  explicit WidePath(const char* path) {
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, text, 4096) > 0) return;
    error = GetLastError() == ERROR_NO_UNICODE_TRANSLATION ? EILSEQ : ENAMETOOLONG;
  }
};

}  // namespace TT_NS
