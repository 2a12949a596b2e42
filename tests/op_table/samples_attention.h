/* Samples of attention. Included by samples.c. */

typedef struct AttentionCase {
  const char* what;
  int smooth, big, ndim;
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
  int mask; /* 0 none, 1 bool, 2 added, 3 added to keys only, 4 bool with a query that sees nothing
             */
  int causal, scale;
} AttentionCase;

static const AttentionCase kAttention[] = {
    {"plain", 1, 0, 4, 2, 2, 2, 3, 4, 3, 2, 0, 0, 0},
    {"causal", 1, 0, 4, 1, 2, 2, 4, 3, 2, 2, 0, 1, 0},
    {"groups", 1, 0, 4, 1, 4, 2, 2, 3, 2, 2, 0, 0, 1},
    {"bool mask", 1, 0, 4, 2, 1, 1, 3, 3, 2, 2, 1, 0, 0},
    {"added mask", 1, 0, 4, 1, 2, 2, 2, 3, 2, 2, 2, 0, 0},
    {"key mask", 1, 0, 4, 2, 2, 2, 2, 3, 2, 1, 3, 0, 1},
    {"unseen", 1, 0, 4, 1, 2, 2, 3, 3, 2, 2, 4, 0, 0},
    {"one head", 1, 0, 3, 2, 1, 1, 3, 2, 2, 3, 2, 0, 0},
    {"matrices", 1, 0, 2, 1, 1, 1, 2, 3, 2, 2, 0, 1, 0},
    {"no keys", 1, 0, 4, 1, 2, 2, 2, 0, 2, 2, 0, 0, 0},
    {"no queries", 1, 0, 4, 1, 2, 2, 0, 3, 2, 2, 0, 0, 0},
    {"blocks", 0, 0, 4, 1, 2, 2, 70, 200, 20, 17, 0, 0, 0},
    {"causal blocks", 0, 0, 4, 1, 2, 1, 150, 150, 9, 33, 0, 1, 0},
    {"masked blocks", 0, 0, 4, 1, 2, 2, 67, 131, 8, 8, 2, 0, 0},
    {"big", 0, 1, 4, 2, 3, 3, 200, 300, 40, 24, 0, 0, 0},
    {"big causal", 0, 1, 4, 2, 4, 2, 257, 257, 16, 16, 0, 1, 0},
};

static tt_tensor* of_rank(tt_tensor* t, int ndim) { /* without its first dimensions, of size 1 */
  tt_tensor* out;
  const int64_t* shape = tt_tensor_shape(t) + 4 - ndim;
  int64_t all[4];
  memcpy(all, shape, (size_t)ndim * sizeof *all);
  if (ndim == 3) all[0] = tt_tensor_shape(t)[0];
  OK(tt_reshape(c, t, all, ndim, &out));
  return out;
}

static void build_attention(const Build* b) {
  size_t i;
  for (i = 0; i < sizeof kAttention / sizeof *kAttention; i++) {
    const AttentionCase* k = &kAttention[i];
    Sample s = blank(b, k->what, k->smooth);
    put(&s, "query",
        tensor_value(of_rank(signed_(S_(k->batch, k->heads, k->queries, k->width)), k->ndim)));
    put(&s, "key",
        tensor_value(of_rank(signed_(S_(k->batch, k->key_heads, k->keys, k->width)), k->ndim)));
    put(&s, "value",
        tensor_value(
            of_rank(signed_(S_(k->batch, k->key_heads, k->keys, k->value_width)), k->ndim)));
    if (k->mask == 1)
      put(&s, "attn_mask", tensor_value(mask(S_(k->batch, 1, k->queries, k->keys))));
    if (k->mask == 2) put(&s, "attn_mask", tensor_value(signed_(S_(k->queries, k->keys))));
    if (k->mask == 3) put(&s, "attn_mask", tensor_value(signed_(S_(k->batch, 1, 1, k->keys))));
    if (k->mask == 4)
      put(&s, "attn_mask",
          tensor_value(make(TT_BOOL, SHAPE(3, 3), DATA(1, 0, 1, 0, 0, 0, 1, 1, 0))));
    if (k->causal) put(&s, "is_causal", bool_value(1));
    if (k->scale) put(&s, "scale", float_value(0.3));
    if (k->heads != k->key_heads) put(&s, "enable_gqa", bool_value(1));
    s.big = k->big;
    emit(b, &s);
  }
}

#define ATTENTION_FAMILIES {"attention", build_attention},
