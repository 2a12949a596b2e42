/* tt-export model.ttg [-o folder] [--name name] [--onnx] [--blob] [--int8 samples.safetensors]:
   writes a graph file as C99 source (name.c, name.h), or as an ONNX model (name.onnx). */
#include "tt.h"

#include <stdio.h>
#include <string.h>

typedef struct Options {
  const char *model, *folder, *name, *samples;
  int onnx, blob;
} Options;

static int usage(FILE* to) {
  fputs(
      "tt-export model.ttg [-o folder] [--name name] [--onnx] [--blob] [--int8 samples]\n"
      "writes the graph of a file as C99 source without allocation, or as an ONNX model\n"
      "  -o folder    where to (default: .)\n"
      "  --name name  of the function in C and of the files (default: that of the model)\n"
      "  --onnx       writes name.onnx instead of name.c and name.h\n"
      "  --blob       writes weights to name.bin instead of constants in name.c\n"
      "  --int8 file  convolutions and linear layers in 8-bit integers; the tensors of the\n"
      "               safetensors file are inputs, run after run\n",
      to);
  return to == stderr ? 2 : 0;
}

/* Returns 0 if the arguments are wrong. */
static int parse(int argc, char** argv, Options* o) {
  int i;
  for (i = 1; i < argc; i++) {
    const int has_value = i + 1 < argc;
    if (strcmp(argv[i], "--onnx") == 0) {
      o->onnx = 1;
    } else if (strcmp(argv[i], "--blob") == 0) {
      o->blob = 1;
    } else if (strcmp(argv[i], "--int8") == 0 && has_value) {
      o->samples = argv[++i];
    } else if (strcmp(argv[i], "-o") == 0 && has_value) {
      o->folder = argv[++i];
    } else if (strcmp(argv[i], "--name") == 0 && has_value) {
      o->name = argv[++i];
    } else if (argv[i][0] != '-' && !o->model) {
      o->model = argv[i];
    } else {
      return 0;
    }
  }
  return o->model != NULL;
}

/* The file's name without folders and its ending. */
static void set_name(Options* o, char* room, size_t size) {
  const char* slash = strrchr(o->model, '/');
  const char* base = slash ? slash + 1 : o->model;
  const char* dot = strrchr(base, '.');
  size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
  if (o->name) return;
  if (n >= size) n = size - 1;
  memcpy(room, base, n);
  room[n] = 0;
  o->name = room;
}

/* Replaces the graph by one that is quantised for the samples of a file. */
static tt_status quantize(tt_ctx* c, const char* path, tt_graph** g) {
  enum { MAX_SAMPLES = 1024 };
  const tt_graph_optimize_opts passes = {TT_GRAPH_OPTIMIZE_PASSES,
                                         TT_PASS_NORM | TT_PASS_FOLD | TT_PASS_CSE | TT_PASS_DCE};
  tt_tensor* samples[MAX_SAMPLES];
  tt_safetensors* file;
  tt_graph *optimized = NULL, *made = NULL;
  int64_t i, n;
  tt_status s = tt_safetensors_open(c, path, &file);
  if (s) return s;
  n = tt_safetensors_size(file);
  if (n > MAX_SAMPLES) n = MAX_SAMPLES;
  for (i = 0; i < n && !s; i++) s = tt_safetensors_get(c, file, i, &samples[i]);
  tt_safetensors_release(file);
  if (!s) s = tt_graph_optimize(c, *g, &passes, &optimized);
  if (!s) s = tt_graph_quantize(c, optimized, (const tt_tensor* const*)samples, n, NULL, &made);
  tt_graph_release(optimized);
  if (s) return s;
  tt_graph_release(*g);
  *g = made;
  return TT_OK;
}

static tt_status export_model(tt_ctx* c, const Options* o) {
  char path[4096];
  tt_graph* g;
  tt_status s = tt_graph_load(c, o->model, &g);
  if (s) return s;
  if (o->samples) s = quantize(c, o->samples, &g);
  if (s) {
    tt_graph_release(g);
    return s;
  }
  if (o->onnx) {
    snprintf(path, sizeof path, "%s/%s.onnx", o->folder, o->name);
    s = tt_graph_export_onnx(c, g, path);
  } else {
    const tt_graph_export_c_opts how = {TT_GRAPH_EXPORT_C_BLOB, o->blob, 0};
    s = tt_graph_export_c_with(c, g, o->folder, o->name, &how);
  }
  tt_graph_release(g);
  return s;
}

int main(int argc, char** argv) {
  Options o = {NULL, ".", NULL, NULL, 0, 0};
  char name[256];
  tt_ctx* c;
  tt_status s;
  if (argc == 2 && strcmp(argv[1], "--help") == 0) return usage(stdout);
  if (!parse(argc, argv, &o)) return usage(stderr);
  set_name(&o, name, sizeof name);
  if (tt_ctx_new(NULL, &c)) return 1;
  s = tt_scope_push(c);
  if (!s) s = export_model(c, &o);
  if (s) fprintf(stderr, "tt-export: %s\n", tt_ctx_error(c)->message);
  tt_ctx_release(c);
  return s != TT_OK;
}
