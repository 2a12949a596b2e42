# libtt.so and libtt.a from the objects; they export exactly src/capi/gen/exports.txt.
set(exports_file ${PROJECT_SOURCE_DIR}/src/capi/gen/exports.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exports_file})
file(STRINGS ${exports_file} exports)
# The list of exported names in the language of the linker.
set(elf_list "TT_${PROJECT_VERSION_MAJOR} {\n  global:\n")
set(pe_list "EXPORTS\n")
set(macho_list "")
set(defines "/* Names of this copy of tt. */\n")
foreach(name IN LISTS exports)
  string(APPEND elf_list "    ${tt_prefix}${name};\n")
  string(APPEND pe_list "    ${tt_prefix}${name}\n")
  string(APPEND macho_list "_${tt_prefix}${name}\n")
  string(APPEND defines "#define ${name} ${tt_prefix}${name}\n")
endforeach()
string(APPEND elf_list "  local: *;\n};\n")
set(elf_file tt.map)
set(pe_file tt.def)
set(macho_file tt.symbols)
set(export_list ${PROJECT_BINARY_DIR}/${${tt_format}_file})
file(CONFIGURE OUTPUT ${export_list} CONTENT "${${tt_format}_list}" @ONLY)
if(TT_PREFIX)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/tt_prefix.h CONTENT "${defines}" @ONLY)
endif()

set(objects $<TARGET_OBJECTS:tt_objects>)
foreach(isa IN LISTS TT_ISAS)
  list(APPEND objects $<TARGET_OBJECTS:tt_cpu_${isa}>)
endforeach()

if(TT_PROFILE STREQUAL minimal)
  add_library(tt_static STATIC ${objects})
  set_target_properties(tt_static PROPERTIES OUTPUT_NAME ${tt_prefix}tt LINKER_LANGUAGE CXX)
  target_include_directories(tt_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
  # By its file: libstdc++_nano, which nano.specs puts in its place, cannot be unwound through.
  target_link_libraries(tt_static INTERFACE -l:libstdc++.a m)
  return()
endif()

# Pointers to operators and kernels need relocations. Packed (DT_RELR), they take 5 kB instead of
# 456, in a static program 1 kB instead of 90. Loaders before glibc 2.36 cannot read them.
include(CheckCSourceCompiles)
# (--fatal-warnings comes first: ld warns about an option that it ignores while it reads it.)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--fatal-warnings,-z,pack-relative-relocs)
check_c_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error \"no DT_RELR\"
#endif
int main(void) { return 0; }" TT_PACKED_RELOCATIONS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

# libtt.so has its own copy of libstdc++ where that is the compiler's library. A sanitizer must see
# the one of the process.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <cstddef>
#ifndef __GLIBCXX__
#error \"another library\"
#endif
int main() {}" TT_GNU_RUNTIME)
set(tt_runtime_library c++)
if(TT_GNU_RUNTIME)
  set(tt_runtime_library stdc++)
endif()

add_library(tt SHARED ${objects})
add_library(tt_static STATIC ${objects})
set_target_properties(tt PROPERTIES OUTPUT_NAME ${tt_prefix}tt LINK_DEPENDS ${export_list}
                      LINKER_LANGUAGE CXX)
set(static_name ${tt_prefix}tt)
if(MSVC)  # tt.lib is what programs link for tt.dll
  string(APPEND static_name _static)
endif()
set_target_properties(tt_static PROPERTIES OUTPUT_NAME ${static_name} LINKER_LANGUAGE CXX)
if(NOT tt_format STREQUAL pe)
  set_target_properties(tt PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endif()
if(tt_format STREQUAL elf)
  target_link_options(tt PRIVATE -Wl,--version-script=${export_list} -Wl,-z,relro -Wl,-z,now
                      -Wl,--gc-sections -Wl,--as-needed)
  include(CheckLinkerFlag)
  foreach(flag -z,nodelete -Bsymbolic-functions -O1)
    string(MAKE_C_IDENTIFIER "TT_LINKER${flag}" known)
    check_linker_flag(CXX -Wl,${flag} ${known})
    if(${known})
      target_link_options(tt PRIVATE -Wl,${flag})
    endif()
  endforeach()
  if(TT_PACKED_RELOCATIONS)
    target_link_options(tt PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
  if(NOT TT_SANITIZE)
    target_link_options(tt PRIVATE -Wl,--no-undefined)
  endif()
elseif(tt_format STREQUAL pe)
  target_sources(tt PRIVATE ${export_list})
  if(MSVC)
    target_link_options(tt PRIVATE /OPT:REF)
  else()  # -static: libtt.dll has its own copy of winpthread.
    target_link_options(tt PRIVATE -Wl,--gc-sections -static)
  endif()
  foreach(target tt tt_static)
    target_link_libraries(${target} PUBLIC bcrypt synchronization)
  endforeach()
else()
  target_link_options(tt PRIVATE -Wl,-exported_symbols_list,${export_list} -Wl,-dead_strip)
  # Programs find it by their rpath, which CMake knows of where it runs on a Mac.
  if(NOT CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG)
    set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")
  endif()
  set_target_properties(tt PROPERTIES MACOSX_RPATH ON BUILD_WITH_INSTALL_NAME_DIR ON
                        INSTALL_NAME_DIR "@rpath")
endif()
if(TT_GNU_RUNTIME AND NOT TT_SANITIZE)
  target_link_options(tt PRIVATE -static-libstdc++ -static-libgcc)
  if(tt_format STREQUAL elf)
    add_library(tt_cxx_runtime OBJECT ${tt_shared_only})
    tt_own_code(tt_cxx_runtime)
    target_sources(tt PRIVATE $<TARGET_OBJECTS:tt_cxx_runtime>)
    add_library(tt_cxx_terminate OBJECT ${tt_static_only})
    tt_own_code(tt_cxx_terminate)
    target_compile_options(tt_cxx_terminate PRIVATE -Os)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/error.cpp TARGET_DIRECTORY tt_objects
      APPEND PROPERTY COMPILE_DEFINITIONS TT_OWN_TERMINATE=1)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/error.cpp TARGET_DIRECTORY tt_objects
      PROPERTY SKIP_PRECOMPILE_HEADERS ON)  # which are compiled without the definition
    target_sources(tt_static PRIVATE $<TARGET_OBJECTS:tt_cxx_terminate>)
  endif()
endif()
if(tt_format STREQUAL elf)  # libraries that libtt opens at run time are beside it
  set_target_properties(tt PROPERTIES BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
endif()
if(NOT MSVC)
  target_link_libraries(tt_static INTERFACE ${tt_runtime_library} m)
  # Programs that find the package contain only the operators that they call, as by pkg-config.
  set(tt_drop_unused -Wl,--gc-sections)
  if(tt_format STREQUAL elf AND TT_PACKED_RELOCATIONS)
    list(APPEND tt_drop_unused -Wl,-z,pack-relative-relocs)
  elseif(tt_format STREQUAL macho)
    set(tt_drop_unused -Wl,-dead_strip)
  endif()
  target_link_options(tt_static INTERFACE "$<INSTALL_INTERFACE:${tt_drop_unused}>")
endif()
foreach(target tt tt_static)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(TT_PREFIX)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
    target_compile_definitions(${target} INTERFACE "TT_PREFIX_HEADER=\"tt_prefix.h\"")
  endif()
endforeach()
