# Compiler flags. None of them is passed on to users of the library.
if(NOT MSVC)
  foreach(lang C CXX)
    set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -DNDEBUG")
    set(CMAKE_${lang}_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
  endforeach()
endif()

set(tt_sanitize_flags)
if(TT_SANITIZE)
  list(JOIN TT_SANITIZE "," list)
  set(tt_sanitize_flags -fsanitize=${list} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
    -O1)
  add_compile_options(${tt_sanitize_flags})
  add_link_options(-fsanitize=${list})
endif()

# The object format decides what the linker understands.
set(tt_format elf)
if(WIN32)
  set(tt_format pe)
elseif(APPLE)
  set(tt_format macho)
endif()
# x87 rounds to another width than the elements have.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^i[3-6]86$")
  add_compile_options(-msse2 -mfpmath=sse)
endif()

set(tt_warnings -Wall -Wextra -Werror)
if(MSVC)  # never run (docs/platforms.md): nobody knows its warnings, so they do not end a build
  # 4100: an argument that is not used, 4127: a constant condition, 4146: minus of an unsigned
  # number, 4324: padding by alignas, 4577: noexcept without exceptions
  set(tt_warnings /W4 /wd4100 /wd4127 /wd4146 /wd4324 /wd4577)
endif()
if(TT_PROFILE STREQUAL minimal)
  foreach(lang C CXX)
    set(CMAKE_${lang}_FLAGS_RELEASE "-Os -DNDEBUG")
  endforeach()
  # int32_t is long there: -Wextra warns of enumerators and numbers in one conditional.
  set(tt_warnings -Wall -Werror)
endif()
set(tt_definitions TT_CHECKED=$<BOOL:${TT_CHECKED}> TT_BLAS=$<BOOL:${TT_BLAS}>
  TT_SLEEF=$<BOOL:${TT_SLEEF}> TT_VERSION="${PROJECT_VERSION}"
  TT_MINIMAL=$<STREQUAL:${TT_PROFILE},minimal>)
if(NOT TT_DTYPES STREQUAL all)
  # in the order of the codes of tt_dtype
  set(tt_codes none bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 u16 u32 u64)
  set(tt_bits 0)
  foreach(dtype bool i32 i64 f32 ${TT_DTYPES})
    list(FIND tt_codes ${dtype} code)
    if(code LESS 1)
      message(FATAL_ERROR "TT_DTYPES: there is no dtype ${dtype}")
    endif()
    math(EXPR tt_bits "${tt_bits} | (1 << ${code})")
  endforeach()
  list(APPEND tt_definitions TT_DTYPE_BITS=${tt_bits}u)
endif()
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  list(APPEND tt_definitions _FILE_OFFSET_BITS=64)  # an off_t that holds any file's size
endif()
if(WIN32)
  list(APPEND tt_definitions _WIN32_WINNT=0x0602)
endif()
foreach(isa baseline avx2 avx512)
  string(TOUPPER ${isa} upper)
  if(isa IN_LIST TT_ISAS)
    list(APPEND tt_definitions TT_HAVE_${upper}=1)
  else()
    list(APPEND tt_definitions TT_HAVE_${upper}=0)
  endif()
endforeach()
if(sve256 IN_LIST TT_ISAS)
  list(APPEND tt_definitions TT_HAVE_SVE256=1)
endif()
if(neon IN_LIST TT_ISAS)
  list(APPEND tt_definitions TT_HAVE_NEON=1)
endif()
if(TT_PREFIX)
  list(APPEND tt_definitions TT_NS=${tt_prefix}tt "TT_PREFIX_HEADER=\"tt_prefix.h\"")
endif()

# Flags of the library and of its internal tests.
function(tt_internals target)
  target_compile_definitions(${target} PRIVATE ${tt_definitions})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  if(MSVC)
    # Preprocessor and names by the standard, exceptions of C++ alone; /fp:precise fuses nothing.
    target_compile_options(${target} PRIVATE /std:c++20 /permissive- /Zc:preprocessor
      /Zc:__cplusplus /EHsc /utf-8 /fp:precise ${tt_warnings})
    return()
  endif()
  target_compile_options(${target} PRIVATE -ffp-contract=off ${tt_warnings})
endfunction()

# Flags of the library itself: FMA only where the source says so, no RTTI, hidden visibility, one
# section per object for --gc-sections.
function(tt_own_code target)
  tt_internals(${target})
  if(MSVC)
    target_compile_options(${target} PRIVATE /GR- /Gy /Gw)
    return()
  endif()
  if(TT_PROFILE STREQUAL minimal)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-threadsafe-statics>)
  else()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_compile_options(${target} PRIVATE -fno-rtti -fvisibility=hidden -ffunction-sections
    -fdata-sections)
  if(tt_format STREQUAL elf)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    # gcc's "rep stos" for a small struct costs more than the rest of a tiny tensor's creation
    target_compile_options(${target} PRIVATE
      -mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign
                           -mmemcpy-strategy=vector_loop:256:noalign,libcall:-1:noalign)
  endif()
endfunction()

# Compiles sources of tt_objects for size, if no tight loop of an application runs through them;
# with a sanitizer CMakeLists.txt optimises the others alone.
function(tt_small)
  set(paths ${ARGN})
  list(TRANSFORM paths PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY tt_small ${paths})
  if(TT_SANITIZE)
    return()
  endif()
  set(option "$<$<NOT:$<CONFIG:Debug>>:-Os>")
  if(MSVC)
    set(option "$<$<NOT:$<CONFIG:Debug>>:/O1>")
  endif()
  set_property(SOURCE ${ARGN} TARGET_DIRECTORY tt_objects APPEND PROPERTY COMPILE_OPTIONS ${option})
endfunction()

# target_precompile_headers, unless there is a compiler cache, which saves more and cannot keep what
# is compiled with such headers.
function(tt_precompile)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_precompile_headers(${ARGN})
  endif()
endfunction()

set(tt_isa_flags_baseline)
set(tt_isa_flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(tt_isa_flags_avx512 ${tt_isa_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
  -mprefer-vector-width=512)
set(tt_isa_flags_sve256 -march=armv8.2-a+sve -msve-vector-bits=256)
set(tt_isa_flags_neon -mfpu=neon)

if(MSVC)
  set(tt_isa_flags_avx2 /arch:AVX2)
  set(tt_isa_flags_avx512 /arch:AVX512)
endif()

# Kernels of one instruction set; targets tt_cpu_<isa>.
function(tt_kernels isa)
  add_library(tt_cpu_${isa} OBJECT ${ARGN})
  tt_own_code(tt_cpu_${isa})
  target_compile_definitions(tt_cpu_${isa} PRIVATE TT_ISA=${isa})
  if(MSVC)
    target_compile_options(tt_cpu_${isa} PRIVATE ${tt_isa_flags_${isa}} /fp:except-
      $<$<NOT:$<CONFIG:Debug>>:/O2>)
    return()
  endif()
  target_compile_options(tt_cpu_${isa} PRIVATE ${tt_isa_flags_${isa}} -fno-math-errno
    -fno-trapping-math -Wno-psabi)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # A loop that clang cannot vectorize is no error.
    target_compile_options(tt_cpu_${isa} PRIVATE -Wno-pass-failed)
  endif()
  # gcc's header of intrinsics takes half of the time of most kernels. Warnings about it that
  # simd/intrinsics.h turns off come back with a precompiled header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64"
     AND NOT isa STREQUAL baseline AND NOT CMAKE_CROSSCOMPILING
     AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    tt_precompile(tt_cpu_${isa} PRIVATE <immintrin.h>)
    set_target_properties(tt_cpu_${isa} PROPERTIES PCH_WARN_INVALID OFF)  # other options: not used
    target_compile_options(tt_cpu_${isa} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  if(NOT TT_SANITIZE)
    # Kernels never throw: no unwind tables. The baseline is compiled for size where another
    # instruction set is the usual one.
    set(level_baseline -Os)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
      set(level_baseline -O2 -ftree-vectorize)
    endif()
    set(level_avx2 -O2 -ftree-vectorize)
    set(level_avx512 -O2 -ftree-vectorize)
    set(level_sve256 -O2 -ftree-vectorize)
    set(level_neon -O2 -ftree-vectorize)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT "-Os" IN_LIST level_${isa})
      list(APPEND level_${isa} -fvect-cost-model=dynamic)
    endif()
    target_compile_options(tt_cpu_${isa} PRIVATE -fno-exceptions
      "$<$<NOT:$<CONFIG:Debug>>:${level_${isa}};-fno-asynchronous-unwind-tables>")
  endif()
endfunction()
