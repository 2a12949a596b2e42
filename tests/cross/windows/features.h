/* In the place of glibc's, for `./dev cross sample`, which reads the C++ headers of this machine
   with the C headers of Windows. What the former find in glibc and Windows does not have: */
#pragma once
#ifdef __cplusplus
extern "C" {
void* aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
int at_quick_exit(void (*)(void));
void quick_exit(int) __attribute__((noreturn));
}
#endif
