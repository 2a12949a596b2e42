// Files, implemented in os_file_<system>.cpp. A negative result is a negated errno.
#pragma once

#include "base/platform.h"

namespace TT_NS {

int os_file_open(const char* path) noexcept;    // for reading; regular files only (else -EINVAL)
int os_file_create(const char* path) noexcept;  // for writing; -EEXIST if it exists
int os_file_append(const char* path) noexcept;  // for writing at the end; created if need be
void os_file_close(int file) noexcept;
int64_t os_file_size(int file) noexcept;
// Returns the number of bytes read: less than requested only at the end of the file.
int64_t os_file_read(int file, void* out, int64_t bytes, int64_t offset) noexcept;
// Maps the first `bytes` bytes read-only; the mapping outlives `file`. NULL on failure.
void* os_file_map(int file, int64_t bytes) noexcept;
void os_file_unmap(void* map, int64_t bytes) noexcept;
// Appends all of them.
int os_file_write(int file, const void* data, int64_t bytes) noexcept;
int os_file_sync(int file) noexcept;
// Renames `from` to `to` atomically and syncs the directory: after a crash, `to` is the old or the
// new file.
int os_file_replace(const char* from, const char* to) noexcept;
void os_file_remove(const char* path) noexcept;
const char* os_error_text(int error) noexcept;  // of a positive errno, in English

}  // namespace TT_NS
