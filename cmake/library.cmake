# libtt.so and libtt.a from the objects; they export exactly src/capi/gen/exports.txt.
set(exports_file ${PROJECT_SOURCE_DIR}/src/capi/gen/exports.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exports_file})
file(STRINGS ${exports_file} exports)
set(map "TT_${PROJECT_VERSION_MAJOR} {\n  global:\n")
set(defines "/* Names of this copy of tt. */\n")
foreach(name IN LISTS exports)
  string(APPEND map "    ${tt_prefix}${name};\n")
  string(APPEND defines "#define ${name} ${tt_prefix}${name}\n")
endforeach()
string(APPEND map "  local: *;\n};\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tt.map CONTENT "${map}" @ONLY)
if(TT_PREFIX)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/tt_prefix.h CONTENT "${defines}" @ONLY)
endif()

set(objects $<TARGET_OBJECTS:tt_objects>)
foreach(isa IN LISTS TT_ISAS)
  list(APPEND objects $<TARGET_OBJECTS:tt_cpu_${isa}>)
endforeach()

# Pointers to operators and kernels need relocations. Packed (DT_RELR), they take 5 kB instead of
# 456, in a static program 1 kB instead of 90. Loaders before glibc 2.36 cannot read them.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs,--fatal-warnings)
check_c_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error \"no DT_RELR\"
#endif
int main(void) { return 0; }" TT_PACKED_RELOCATIONS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

add_library(tt SHARED ${objects})
if(NOT TT_SANITIZE)
  add_library(tt_cxx_runtime OBJECT ${tt_shared_only})
  tt_own_code(tt_cxx_runtime)
  target_sources(tt PRIVATE $<TARGET_OBJECTS:tt_cxx_runtime>)
endif()
add_library(tt_static STATIC ${objects})
set_target_properties(tt PROPERTIES OUTPUT_NAME ${tt_prefix}tt VERSION ${PROJECT_VERSION} SOVERSION
  ${PROJECT_VERSION_MAJOR}
                      LINK_DEPENDS ${PROJECT_BINARY_DIR}/tt.map LINKER_LANGUAGE CXX)
set_target_properties(tt_static PROPERTIES OUTPUT_NAME ${tt_prefix}tt LINKER_LANGUAGE CXX)
target_link_options(tt PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/tt.map -Wl,-z,nodelete
  -Wl,-z,relro -Wl,-z,now
                    -Wl,-Bsymbolic-functions -Wl,--gc-sections -Wl,--as-needed -Wl,-O1)
if(TT_PACKED_RELOCATIONS)
  target_link_options(tt PRIVATE -Wl,-z,pack-relative-relocs)
endif()
if(NOT TT_SANITIZE)  # a sanitizer must see the one libstdc++ of the process
  target_link_options(tt PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined)
endif()
target_link_libraries(tt_static INTERFACE stdc++ m)
foreach(target tt tt_static)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(TT_PREFIX)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
    target_compile_definitions(${target} INTERFACE "TT_PREFIX_HEADER=\"tt_prefix.h\"")
  endif()
endforeach()
