#include "graph/c/exporter.h"

#include "base/arith.h"
#include "graph/c/templates.h"
#include "graph/plan/plan.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kAlign = 16;

bool is_name(const char* s) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!letter(*s)) return false;
  for (; *s; s++)
    if (!letter(*s) && !(*s >= '0' && *s <= '9')) return false;
  return true;
}

}  // namespace

const char* c_type(Dtype d) {
  switch (d) {
    case Dtype::kBool: return "unsigned char";
    case Dtype::kU8: return "uint8_t";
    case Dtype::kI8: return "int8_t";
    case Dtype::kI16: return "int16_t";
    case Dtype::kI32: return "int32_t";
    case Dtype::kI64: return "int64_t";
    case Dtype::kF32: return "float";
    case Dtype::kF64: return "double";
    default: return nullptr;
  }
}

const char* name_in_functions(Dtype d) {
  switch (d) {
    case Dtype::kBool: return "bool";
    case Dtype::kU8: return "uint8";
    case Dtype::kI8: return "int8";
    case Dtype::kI16: return "int16";
    case Dtype::kI32: return "int32";
    case Dtype::kI64: return "int64";
    case Dtype::kF32: return "float";
    default: return "";
  }
}

bool is_contiguous(const IrValue& v) { return is_contiguous(v.sizes, v.strides); }

void CExporter::refuse(const char* why) {
  fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", int64_t(at_), op(), why);
}

const IrArg& CExporter::arg(const char* name) const {
  const OpSchema& s = *node().op->schema;
  for (int32_t i = 0; i < s.n_args; i++)
    if (strcmp(s.args[i].name, name) == 0) return node().args[i];
  fail(TT_INTERNAL, "{} has no argument {}", op(), name);
}
bool CExporter::node_has(const char* name) const {
  const OpSchema& s = *node().op->schema;
  for (int32_t i = 0; i < s.n_args; i++)
    if (strcmp(s.args[i].name, name) == 0) return true;
  return false;
}
bool CExporter::has_arg(const char* name) const { return arg(name).kind != Value::kNone; }
int32_t CExporter::tensor(const char* name) const {
  const IrArg& a = arg(name);
  return a.kind == Value::kTensor ? a.values[0] : -1;
}
double CExporter::number(const char* name) const {
  const IrArg& a = arg(name);
  if (a.kind == Value::kFloat) return a.f;
  if (a.kind == Value::kScalar) return a.scalar.real();
  return double(a.i);
}
int64_t CExporter::integer(const char* name) const {
  const IrArg& a = arg(name);
  if (a.kind == Value::kScalar && a.scalar.is_int()) return a.scalar.i;
  return a.kind == Value::kInt ? a.i : int64_t(number(name));
}
int64_t CExporter::item(const char* name, int64_t i, int64_t missing) const {
  const IrArg& a = arg(name);
  if (a.kind == Value::kInt) return a.i;
  if (a.ints.empty()) return missing;
  return a.ints[a.ints.size() == 1 ? 0 : i];
}

// ---- text ----

// Notes that the source needs a function, of elements of this dtype if there is one for each.
void CExporter::use(const char* name, Dtype dtype) {
  for (int64_t i = 0; i < kNumCTemplates; i++)
    if (strcmp(kCTemplates[i].name, name) == 0) used_[i] |= 1u << int(dtype);
}
// Begins a call of a function that exists for int8 and for uint8.
void CExporter::begin_bytes_call(Text& call, const char* name, Dtype dtype) {
  use(name, dtype);
  call.add("  ").add(name).add("_").add(name_in_functions(dtype)).add("(");
}
// Returns what a mark in a template stands for.
static const char* text_of_mark(char mark, Dtype dtype) {
  if (mark == 'T') return c_type(dtype);
  if (mark == 'N') return dtype == Dtype::kF32 ? "isnan" : "0 & ";
  return name_in_functions(dtype);
}
void CExporter::add_templates(Text& out) {
  for (int64_t i = 0; i < kNumCTemplates; i++)
    for (int32_t d = 0; d < kNumDtypes; d++) {
      if (!(used_[i] >> d & 1)) continue;
      for (const char* at = kCTemplates[i].text; *at;) {
        const char* mark = strchr(at, '$');
        const int64_t n = mark ? mark - at : int64_t(strlen(at));
        out.add({at, n});
        if (mark) out.add(text_of_mark(mark[1], Dtype(d)));
        at += n + (mark ? 2 : 0);
      }
    }
}
void CExporter::add_float(Text& out, double v, Dtype dtype) {
  const bool narrow = dtype != Dtype::kF64;
  if (v != v) {
    out.add("NAN");
  } else if (v - v != 0) {
    out.add(v > 0 ? "INFINITY" : "-INFINITY");
  } else {
    char digits[32];
    out.add({digits, format_double(digits, narrow ? double(float(v)) : v, narrow)});
    out.add(narrow ? "f" : "");
  }
}
void CExporter::add_list(Text& out, Span<const int64_t> list) {
  out.add("(const long[]){");
  for (int64_t i = 0; i < list.n; i++) out.add(i ? ", " : "").add(list[i]);
  out.add("}");
}
// C has no literal of the smallest integer.
void CExporter::add_whole(Text& out, int64_t v) {
  if (v == INT64_MIN) out.add("INT64_MIN");
  else out.add(v);
}
void CExporter::add_real(Text& out, const IrArg& a, Dtype dtype) {
  if (a.kind == Value::kScalar && a.scalar.is_complex()) refuse("a complex number");
  if (a.kind == Value::kFloat) add_float(out, a.f, dtype);
  else add_float(out, a.kind == Value::kScalar ? a.scalar.real() : double(a.i), dtype);
}

void CExporter::add_pointer(Text& out, int32_t v, int64_t more_offset) {
  const IrValue& x = value(v);
  const char* type = c_type(x.dtype);
  if (!type) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
  const IrStorage& s = g_.storages[x.storage];
  const int64_t offset = x.offset / item_size(x.dtype) + more_offset;
  places_[x.storage].is_named = true;
  out.add("(");
  if (s.role == IrRole::kInput) {
    out.add("in").add(int64_t(input_of_[x.storage]));
  } else if (s.role != IrRole::kMade && blob_) {
    out.add("(const ").add(type).add(" *)(weights + ").add(places_[x.storage].offset).add(")");
  } else if (s.role != IrRole::kMade) {
    out.add("(const ").add(type).add(" *)w").add(int64_t(x.storage));
  } else if (out_of_[x.storage] >= 0) {
    out.add("out").add(int64_t(out_of_[x.storage]));
  } else {
    out.add("(").add(type).add(" *)(arena + ").add(places_[x.storage].offset).add(")");
  }
  out.add(" + ").add(offset).add(")");
}

// Adds the element of v for the open loops.
void CExporter::add_at(Text& out, int32_t v, int64_t n_loops) {
  const IrValue& x = value(v);
  add_pointer(out, v);
  out.add("[");
  add_index(out, x.sizes, x.strides, n_loops);
  out.add("]");
}

int64_t CExporter::node_scratch(int64_t bytes) {
  const int64_t offset = scratch_;
  scratch_ += round_up(bytes, kAlign);
  max_scratch_ = max(max_scratch_, scratch_);
  return offset;
}

int64_t rows_of(const IrValue& v) {
  int64_t n = 1;
  for (int64_t i = 0; i < v.ndim() - 1; i++) n *= v.sizes[i];
  return n;
}

// Adds the index of the element in a copy of v without gaps.
void CExporter::add_dense_index(Text& out, const IrValue& v, int64_t n_loops) {
  Shape dense = v.sizes;
  int64_t step = 1;
  for (int64_t i = v.ndim() - 1; i >= 0; i--) {
    dense[i] = step;
    step *= v.sizes[i];
  }
  add_index(out, v.sizes, dense, n_loops);
}

// Adds the argument for a float32 result. A result with gaps is computed in scratch memory, and
// end_call copies it.
void CExporter::add_result(Text& out, int32_t v) {
  if (v < 0 || is_contiguous(value(v))) return add_address(out, v);
  if (value(v).dtype != Dtype::kF32) refuse("a result that is not float32");
  const int64_t offset = node_scratch(value(v).numel() * 4);
  results_.push_back({v, offset});
  out.add("(float *)(scratch + ").add(offset).add(")");
}
void CExporter::end_call(const Text& call) {
  body_.add(call.span()).add(");\n");
  for (const Result& r : results_) {
    const IrValue& y = value(r.value);
    open_loops(y.sizes);
    add_at(body_, r.value, y.ndim());
    body_.add(" = ((float *)(scratch + ").add(r.offset).add("))[");
    add_dense_index(body_, y, y.ndim());
    body_.add("];\n");
    close_loops(y.ndim());
  }
  results_.clear();
}

// Writes a copy of v without gaps to scratch memory and adds its address to out.
void CExporter::add_dense_copy(Text& out, int32_t v, Dtype dtype) {
  const IrValue& x = value(v);
  const char* type = c_type(dtype);
  const int64_t offset = node_scratch(x.numel() * item_size(dtype));
  open_loops(x.sizes);
  body_.add("((").add(type).add(" *)(scratch + ").add(offset).add("))[");
  add_dense_index(body_, x, x.ndim());
  body_.add("] = (").add(type).add(")");
  add_at(body_, v, x.ndim());
  body_.add(";\n");
  close_loops(x.ndim());
  out.add("((").add(type).add(" *)(scratch + ").add(offset).add("))");
}

void CExporter::add_address(Text& out, int32_t v, bool contiguous, Dtype dtype) {
  if (v < 0) {
    out.add("NULL");
    return;
  }
  if (value(v).dtype != dtype) {
    if (dtype == Dtype::kF32) refuse("an argument that is not float32");
    refuse("an argument of another dtype");
  }
  if (!contiguous || is_contiguous(value(v))) add_pointer(out, v);
  else add_dense_copy(out, v, dtype);
}

void CExporter::open_loop(int64_t i, int64_t n) {
  body_.add("  for (long i").add(i).add(" = 0; i").add(i).add(" < ").add(n);
  body_.add("; i").add(i).add("++) {\n");
}
// Opens a loop for each dimension, or a block if there is none: variables are declared inside.
void CExporter::open_loops(Ints sizes) {
  if (!sizes.n) body_.add("  {\n");
  for (int64_t i = 0; i < sizes.n; i++) open_loop(i, sizes[i]);
  body_.add("    ");
}
void CExporter::close_loops(int64_t n) {
  body_.add("  ");
  for (int64_t i = 0; i < max(n, int64_t(1)); i++) body_.add("}");
  body_.add("\n");
}
// Adds the index of an element. Sizes are aligned at the last loop; those of 1 are broadcast.
void CExporter::add_index(Text& out, Ints sizes, Ints strides, int64_t n_loops) {
  bool some = false;
  for (int64_t i = 0; i < sizes.n; i++) {
    if (sizes[i] == 1 || strides[i] == 0) continue;
    out.add(some ? " + i" : "i").add(i + n_loops - sizes.n).add(" * ").add(strides[i]);
    some = true;
  }
  if (!some) out.add("0");
}

// ---- the arena ----

void CExporter::check() {
  for (const IrStorage& s : g_.storages)
    if (s.role == IrRole::kState)
      fail(TT_NOT_IMPLEMENTED,
           "the graph writes memory from outside ({}): only a graph without state "
           "can be exported to C",
           s.name.empty() ? "without a name" : s.name.c_str());
  for (const int32_t v : g_.inputs)
    if (!is_contiguous(value(v)) || value(v).offset != 0)
      fail(TT_NOT_IMPLEMENTED, "an input is not contiguous");
}

void CExporter::find_lives() {
  const int32_t n_nodes = int32_t(g_.nodes.size());
  for (int64_t i = 0; i < g_.storages.size(); i++) {
    places_.push_back(StoragePlace());
    places_[i].bytes = round_up(max(g_.storages[i].bytes, int64_t(1)), kAlign);
    out_of_.push_back(-1);
    input_of_.push_back(-1);
  }
  for (int64_t k = 0; k < g_.inputs.size(); k++)
    input_of_[value(g_.inputs[k]).storage] = int32_t(k);
  for (at_ = 0; at_ < n_nodes; at_++) {
    const auto touch = [&](int32_t v) {
      StoragePlace& p = places_[value(v).storage];
      if (p.first < 0) p.first = at_;
      p.last = at_;
    };
    for_each_value(node(), touch);
    const bool layer = is("recurrent_layer");  // what it saves for gradients is not made
    for (int64_t k = 0; k < node().outs.size(); k++)
      if (node().outs[k] >= 0 && !(layer && k == 2)) touch(node().outs[k]);
  }
  for (int64_t k = 0; k < g_.outputs.size(); k++) {
    const IrValue& v = value(g_.outputs[k]);
    const bool whole = is_contiguous(v) && v.offset == 0 &&
                       g_.storages[v.storage].bytes == v.numel() * item_size(v.dtype);
    const bool made = g_.storages[v.storage].role == IrRole::kMade;
    if (whole && made && out_of_[v.storage] < 0) out_of_[v.storage] = int32_t(k);
    places_[v.storage].last = n_nodes;
  }
}

// Places constants one after the other in the blob.
void CExporter::place_constants() {
  for (int64_t i = 0; i < g_.storages.size(); i++) {
    const IrRole role = g_.storages[i].role;
    if (role == IrRole::kMade || role == IrRole::kInput || places_[i].last < 0) continue;
    places_[i].offset = blob_bytes_;
    blob_bytes_ += places_[i].bytes;
  }
}

void CExporter::place_made() {
  SmallVec<Placement, 8> made;
  for (int64_t i = 0; i < places_.size(); i++) {
    const StoragePlace& p = places_[i];
    Placement m{.bytes = p.bytes, .birth = p.first, .death = p.last};
    m.shared = g_.storages[i].role != IrRole::kMade || p.first < 0 || out_of_[i] >= 0;
    made.push_back(m);
  }
  arena_ = place_greedily({made.data(), made.size()}, kAlign);
  for (int64_t i = 0; i < places_.size(); i++)
    if (!made[i].shared) places_[i].offset = made[i].offset;
}

// ---- nodes ----

bool CExporter::only_views() const {
  if (node().outs.size() != node().n_results) return false;
  for (int64_t i = 0; i < node().outs.size(); i++)
    if (node().outs[i] >= 0 && !is_view_out(g_, node(), i)) return false;
  return true;
}

void CExporter::emit_node() {
  scratch_ = 0;
  if (only_views()) return;
  for (const int32_t v : node().outs)
    if (v >= 0 && g_.storages[value(v).storage].role != IrRole::kMade)
      refuse("writes an input or a constant");
  body_.add("  /* ").add(op()).add(" */\n");
  if (has_float64() && !serves_float64()) refuse("is not exported for float64");
  if (emit_division() || emit_shift() || emit_elementwise() || emit_table()) return;
  const Emitter* const emitter = find_emitter();
  if (!emitter) refuse("has no C template");
  emitter->emit(*this);
}

// ---- the files ----

// Adds a number that is stored at data.
void CExporter::add_element(Text& out, Dtype dtype, const char* data) {
  const int64_t size = item_size(dtype);
  if (dtype == Dtype::kF32) {
    float v;
    memcpy(&v, data, 4);
    return add_float(out, double(v));
  }
  if (dtype == Dtype::kF64) {
    double v;
    memcpy(&v, data, 8);
    return add_float(out, v, dtype);
  }
  int64_t v = 0;  // little-endian, as everywhere in tt
  memcpy(&v, data, size_t(size));
  const int64_t unused = 64 - 8 * size;
  const bool is_signed = dtype != Dtype::kBool && dtype != Dtype::kU8;
  if (is_signed) v = int64_t(uint64_t(v) << unused) >> unused;
  add_whole(out, v);
  if (size == 8 && v != INT64_MIN) out.add("LL");
}

// Names come from files: one that could end the comment is left out.
static bool fits_in_comment(const Text& name) {
  for (const char c : name.span())
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' &&
        c != '.')
      return false;
  return !name.empty();
}

void CExporter::add_constant(Text& out, int32_t storage) {
  const IrStorage& s = g_.storages[storage];
  const Dtype dtype = s.last_value < 0 ? Dtype::kNone : value(s.last_value).dtype;
  const char* type = c_type(dtype);
  if (!type) fail(TT_NOT_IMPLEMENTED, "a constant that is not floating or integer");
  const int64_t size = item_size(dtype);
  const int64_t n = s.bytes / size;
  out.add("static const ")
      .add(type)
      .add(" w")
      .add(int64_t(storage))
      .add("[")
      .add(max(n, int64_t(1)));
  out.add("] = {");
  const char* data = static_cast<const char*>(s.tensor->storage->data);
  for (int64_t i = 0; i < n; i++) {
    if (i) out.add(",");
    out.add(i % 8 ? " " : "\n  ");
    add_element(out, dtype, data + i * size);
  }
  if (n == 0) out.add("0");
  out.add("};");
  if (fits_in_comment(s.name)) out.add("  /* ").add(s.name.span()).add(" */");
  out.add("\n");
}

// Adds the inputs and outputs, with their types for a declaration. some: others precede them.
void CExporter::add_parameters(Text& out, bool types, bool some) {
  const auto list = [&](const char* name, const char* what, bool constant,
                        Span<const int32_t> values) {
    for (int64_t i = 0; i < values.n; i++, some = true) {
      const char* type = c_type(value(values[i]).dtype);
      if (!type) fail(TT_NOT_IMPLEMENTED, "{} {} has an unsupported dtype", what, i);
      out.add(some ? ", " : "");
      if (types) out.add(constant ? "const " : "").add(type).add(" *");
      out.add(name).add(i);
    }
  };
  list("in", "input", true, g_.inputs);
  list("out", "output", false, g_.outputs);
}

void CExporter::add_signature(Text& out, bool arena) {
  out.add("void ").add(name_).add(arena ? "_run(void *memory" : "(");
  if (blob_) out.add(arena ? ", " : "").add("const void *blob");
  add_parameters(out, true, arena || blob_);
  out.add(")");
}

// Writes what the graph reads from outside: as arrays, or one after the other in a blob.
void CExporter::add_constants(CFiles& files) {
  for (int32_t i = 0; i < g_.storages.size(); i++) {
    const IrStorage& s = g_.storages[i];
    const bool unused = places_[i].first < 0 && places_[i].last < 0;
    if (s.role == IrRole::kMade || s.role == IrRole::kInput || unused) continue;
    if (!blob_) {
      if (places_[i].is_named) add_constant(files.source, i);
      continue;
    }
    files.blob.append({static_cast<const char*>(s.tensor->storage->data), s.bytes});
    files.blob.resize(places_[i].offset + places_[i].bytes);
  }
}

// Copies to their place the outputs that are not made there.
void CExporter::copy_outputs() {
  for (int64_t k = 0; k < g_.outputs.size(); k++) {
    const int32_t v = g_.outputs[k];
    if (out_of_[value(v).storage] == k) continue;
    const IrValue& x = value(v);
    body_.add("  /* output ").add(k).add(" */\n  { long at = 0;\n");
    open_loops(x.sizes);
    body_.add("out").add(k).add("[at++] = ");
    add_at(body_, v, x.ndim());
    body_.add(";\n");
    close_loops(x.ndim());
    body_.add("  }\n");
  }
}

// Adds a line of a comment for each value: its name, element type and sizes.
void CExporter::add_shapes(Text& out, const char* name, Span<const int32_t> values) {
  for (int64_t i = 0; i < values.n; i++) {
    const IrValue& v = value(values[i]);
    out.add("   ").add(name).add(i).add(": ").add(c_type(v.dtype)).add(" (");
    for (int64_t d = 0; d < v.ndim(); d++) out.add(d ? ", " : "").add(v.sizes[d]);
    out.add(")\n");
  }
}

void CExporter::write_header(Text& header) {
  header.add("/* ").add(name_).add(": exported by tt. Tensors are row-major without gaps.\n");
  Text signature, with_arena;
  add_signature(signature, false);
  add_signature(with_arena, true);
  add_shapes(header, "in", g_.inputs);
  add_shapes(header, "out", g_.outputs);
  if (blob_)
    header.add("   blob: the bytes of ")
        .add(name_)
        .add(".bin, aligned to 16 bytes, little-endian.\n");
  header.add("   Inputs and outputs must not overlap. */\n#ifndef ").add(name_).add("_H\n#define ");
  header.add(name_).add("_H\n#include <stdint.h>\n#define ").add(name_).add("_ARENA_BYTES ");
  header.add(max(arena_ + max_scratch_, kAlign)).add("\n");
  if (blob_) header.add("#define ").add(name_).add("_BLOB_BYTES ").add(blob_bytes_).add("\n");
  header.add(
      "/* In memory of the caller, of that size and aligned to 16 bytes: for several at once. "
      "*/\n");
  header.add(with_arena.span()).add(";\n/* In static memory: one call at a time. */\n");
  header.add(signature.span()).add(";\n#endif\n");
}

void CExporter::write_source(CFiles& files) {
  Text& source = files.source;
  source.add("/* Exported by tt: C99, libm only. */\n#include \"").add(name_).add(".h\"\n\n");
  source.add("#include <math.h>\n#include <stddef.h>\n\n");
  add_constants(files);
  add_templates(source);
  source.add("\n");
  add_signature(source, true);
  source.add(" {\n  char *const arena = memory;\n");
  source.add("  char *const scratch = arena + ").add(arena_).add(";\n");
  if (blob_) source.add("  const char *const weights = blob;\n  (void)weights;\n");
  source.add("  (void)arena;\n  (void)scratch;\n");
  for (int64_t i = 0; i < g_.inputs.size(); i++) source.add("  (void)in").add(i).add(";\n");
  for (int64_t i = 0; i < g_.outputs.size(); i++) source.add("  (void)out").add(i).add(";\n");
  source.add(body_.span()).add("}\n\n");
  add_signature(source, false);
  source.add(" {\n  static union { float aligned; int64_t too; char bytes[");
  source.add(name_).add("_ARENA_BYTES]; } memory;\n  ").add(name_).add("_run(memory.bytes");
  if (blob_) source.add(", blob");
  add_parameters(source, false, true);
  source.add(");\n}\n");
}

void CExporter::write(CFiles& files) {
  if (!is_name(name_)) fail_arg(TT_INVALID_ARG, "name", "'{}' is not a C identifier", name_);
  for (const CTemplate& t : kCTemplates)
    if (strcmp(t.name, name_) == 0)
      fail_arg(TT_INVALID_ARG, "name", "'{}' is a function that sources have: take another name",
               name_);
  check();
  for (int64_t i = 0; i < kNumCTemplates; i++) used_.push_back(0);
  find_lives();
  if (blob_) place_constants();
  place_made();
  const int32_t n = int32_t(g_.nodes.size());
  for (at_ = 0; at_ < n; at_++) emit_node();
  at_ = n - 1;
  copy_outputs();
  write_header(files.header);
  write_source(files);
}

void export_c(const Graph& g, const char* name, bool blob, CFiles& files) {
  CExporter(g, name, blob).write(files);
}

}  // namespace TT_NS
