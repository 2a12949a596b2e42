// The manifest of all operators, and their schemas, which are in it.
#include "capi/api.h"
#include "dispatch/all_ops.h"
#include "dispatch/op_ref.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

static constinit Mutex manifest_lock;

// Unpacks the manifest: bytes below 0x80, and copies of what came before
// (codegen/cxx/manifest.py).
static void unpack_manifest(char* out) {
  const auto* p = reinterpret_cast<const uint8_t*>(manifest_packed);
  const uint8_t* end = p + manifest_size;
  while (p < end) {
    const int code = *p++;
    if (code < 0x80) {
      *out++ = char(code);
      continue;
    }
    const bool near = code >= 0xc0;
    const int length = 4 + (near ? code >> 2 & 15 : code & 63);
    const int low = *p++;
    const int high = near ? code & 3 : *p++;
    const char* from = out - (high << 8 | low) - 1;
    for (int i = 0; i < length; i++) *out++ = *from++;
  }
}
// The text of the manifest. The caller holds the lock.
static const char* unpacked_manifest() {
  if (!manifest_text[0]) unpack_manifest(manifest_text);
  return manifest_text;
}
const char* tt_manifest(void) {
  Lock lock(manifest_lock);
  return unpacked_manifest();
}

// ---- schemas ----

// Copies the schemas of the manifest, each with a 0 at its end.
static void copy_schemas(char* out) {
  constexpr char kKey[] = "\"schema\":\"";
  const char* at = unpacked_manifest();
  while ((at = strstr(at, kKey))) {
    for (at += sizeof kKey - 1; *at != '"'; at++) {
      if (*at == '\\') at++;
      *out++ = *at;
    }
    *out++ = 0;
  }
}

// What follows the name of a schema's operator in `name`, NULL if that begins otherwise.
static const char* variant_of(const char* schema, const char* name) {
  const auto length = size_t(strchr(schema, '(') - schema);
  return strncmp(schema, name, length) ? nullptr : name + length;
}

namespace TT_NS {

const char* schema_text(const OpInfo& op) {
  if (op.is_custom()) return reinterpret_cast<const OwnedOp&>(op).text;
  Lock lock(manifest_lock);
  if (!schema_lines[0]) copy_schemas(schema_lines);
  const char* found = "";
  for (const char* line = schema_lines; *line; line += strlen(line) + 1) {
    const char* const variant = variant_of(line, op.name());
    if (!variant) continue;
    if (!*variant) return line;
    if (!strcmp(variant, "_") || !strcmp(variant, "_into")) found = line;
  }
  return found;
}

}  // namespace TT_NS
