// The width of a pointer, by the compiler: Linux's header knows it of the machine it is made for.
#if __SIZEOF_POINTER__ == 8
#define __WORDSIZE 64
#define __WORDSIZE_TIME64_COMPAT32 1
#else
#define __WORDSIZE 32
#define __WORDSIZE_TIME64_COMPAT32 0
#define __WORDSIZE32_SIZE_ULONG 0
#define __WORDSIZE32_PTRDIFF_LONG 0
#endif
