// A cuDNN with its backend API alone: it keeps attributes, and computes a graph one operation after
// the other, in double, from the sizes and strides of its tensors. It counts its plans and calls,
// spoils its workspace, refuses f16 and the first engine of each graph, and requires what cuDNN
// requires of descriptors.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int sdpa_stub_plans;
EXPORT int sdpa_stub_calls;
EXPORT bool sdpa_stub_refuses;
int sdpa_stub_plans;
int sdpa_stub_calls;
bool sdpa_stub_refuses;  // whether it refuses to run plans

namespace {

constexpr int kRefused = 3000;
constexpr int64_t kWork = 40;
enum Kind {
  kPointwise = 0,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kPointwiseOperation = 13,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
};
enum Type { kFloat = 0, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };

struct Attribute {
  int type;
  int64_t n;
  std::vector<char> bytes;
};
struct Descriptor {
  int kind = 0;
  bool finished = false;
  int choice = -1;  // of a config
  std::map<int, Attribute> attributes;

  bool has(int name) const { return attributes.count(name) != 0; }
  template <class T> T get(int name, int64_t i = 0) const {
    T v = {};
    const auto at = attributes.find(name);
    if (at != attributes.end())
      memcpy(&v, at->second.bytes.data() + size_t(i) * sizeof v, sizeof v);
    return v;
  }
  int64_t count(int name) const { return has(name) ? attributes.at(name).n : 0; }
  const Descriptor* of(int name, int64_t i = 0) const { return get<Descriptor*>(name, i); }
};

// Names and types of the attributes that a kind must have.
struct Rule {
  int kind;
  std::vector<std::pair<int, int>> needed;
};
const std::vector<Rule> kRules = {
    {kPointwise, {{0, 14}, {1, 1}}},
    {kHeuristics, {{200, 8}, {201, 15}}},
    {kPlan, {{400, 0}, {401, 15}}},
    {kPointwiseOperation, {{750, 15}, {751, 15}, {753, 15}, {754, 4}, {755, 4}}},
    {kGraph, {{800, 0}, {801, 15}}},
    {kPack, {{1000, 3}, {1001, 6}, {1003, 6}}},
    {kTensor, {{900, 3}, {901, 1}, {902, 3}, {903, 3}, {906, 3}}},
    {kMatmul, {{1500, 1}}},
    {kMatmulOperation, {{1520, 15}, {1521, 15}, {1522, 15}, {1523, 15}}},
    {kReduction, {{1600, 18}, {1601, 1}}},
    {kReductionOperation, {{1610, 15}, {1611, 15}, {1612, 15}}},
    {kReshapeOperation, {{2200, 15}, {2201, 15}}},
};
bool is_complete(const Descriptor& d) {
  for (const Rule& rule : kRules) {
    if (rule.kind != d.kind) continue;
    for (const auto& [name, type] : rule.needed)
      if (!d.has(name) || d.attributes.at(name).type != type) return false;
  }
  for (const auto& [name, a] : d.attributes)
    for (int64_t i = 0; a.type == 15 && i < a.n; i++)
      if (!d.of(name, i)->finished) return false;
  if (d.kind != kTensor) return true;
  return d.count(902) == 4 && d.count(903) == 4 && d.get<int>(901) != 2;
}

// ---- values ----

struct Index {
  int64_t i[4];
};
int64_t size_of(const Descriptor& t, int d) { return t.get<int64_t>(902, d); }
bool is_between(const Descriptor& t) { return t.get<bool>(907); }
// The place of an element; a dimension of fewer elements is repeated.
int64_t place(const Descriptor& t, const Index& at, const Descriptor& whole) {
  int64_t p = 0;
  for (int d = 0; d < 4; d++)
    p += at.i[d] * size_of(t, d) / size_of(whole, d) * t.get<int64_t>(903, d);
  return p;
}
double rounded(double v, int type) {
  if (type != kBfloat16 || v - v != 0) return v;
  const float f = float(v);
  uint32_t b;
  memcpy(&b, &f, sizeof b);
  b = (b + 0x7fffu + (b >> 16 & 1)) & 0xffff0000u;
  float r;
  memcpy(&r, &b, sizeof r);
  return double(r);
}

class Run {
 public:
  explicit Run(const Descriptor& pack) {
    for (int64_t i = 0; i < pack.count(1000); i++)
      stored_[pack.get<int64_t>(1000, i)] = pack.get<char*>(1001, i);
  }
  bool failed() const { return failed_; }

  double load(const Descriptor& t, const Index& at, const Descriptor& whole) {
    const int64_t p = place(t, at, whole);
    if (is_between(t)) return between(t)[size_t(p)];
    const char* const data = stored(t);
    if (!data) return 0;
    if (t.get<int>(901) == kFloat) {
      float f;
      memcpy(&f, data + p * 4, sizeof f);
      return double(f);
    }
    const uint32_t bits = uint32_t(reinterpret_cast<const uint16_t*>(data)[p]) << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return double(f);
  }
  void store(const Descriptor& t, const Index& at, double v) {
    const int64_t p = place(t, at, t);
    const double r = rounded(v, t.get<int>(901));
    if (is_between(t)) {
      between(t)[size_t(p)] = r;
      return;
    }
    char* const data = stored(t);
    if (!data) return;
    const float f = float(r);
    if (t.get<int>(901) == kFloat) {
      memcpy(data + p * 4, &f, sizeof f);
    } else {
      uint32_t b;
      memcpy(&b, &f, sizeof b);
      reinterpret_cast<uint16_t*>(data)[p] = uint16_t(b >> 16);
    }
  }
  template <class F> static void each(const Descriptor& t, const F& f) {
    Index at;
    for (at.i[0] = 0; at.i[0] < size_of(t, 0); at.i[0]++)
      for (at.i[1] = 0; at.i[1] < size_of(t, 1); at.i[1]++)
        for (at.i[2] = 0; at.i[2] < size_of(t, 2); at.i[2]++)
          for (at.i[3] = 0; at.i[3] < size_of(t, 3); at.i[3]++) f(at);
  }

  void multiply(const Descriptor& o) {
    const Descriptor &a = *o.of(1520), &b = *o.of(1521), &c = *o.of(1522);
    if (size_of(a, 3) != size_of(b, 2) || size_of(a, 2) != size_of(c, 2) ||
        size_of(b, 3) != size_of(c, 3) || a.get<int>(901) == kInt32)
      failed_ = true;
    each(c, [&](const Index& at) {
      double sum = 0;
      for (int64_t k = 0; k < size_of(a, 3); k++) {
        const int64_t ha = at.i[1] * size_of(a, 1) / size_of(c, 1);
        const int64_t hb = at.i[1] * size_of(b, 1) / size_of(c, 1);
        sum += load(a, {{at.i[0], ha, at.i[2], k}}, a) * load(b, {{at.i[0], hb, k, at.i[3]}}, b);
      }
      store(c, at, sum);
    });
  }
  void reduce(const Descriptor& o) {
    const Descriptor &x = *o.of(1610), &y = *o.of(1611);
    const bool max = o.of(1612)->get<int>(1600) == 3;
    std::map<int64_t, double> sums;
    each(x, [&](const Index& at) {
      const double v = load(x, at, x);
      const auto [sum, isNew] = sums.insert({place(y, at, x), v});
      if (!isNew) sum->second = max ? std::max(sum->second, v) : sum->second + v;
    });
    each(y, [&](const Index& at) { store(y, at, sums[place(y, at, y)]); });
  }
  // The same memory, described by other sizes and strides.
  void view(const Descriptor& o) {
    const Descriptor &x = *o.of(2200), &y = *o.of(2201);
    Descriptor as_x = x;
    as_x.attributes[902] = y.attributes.at(902);
    as_x.attributes[903] = y.attributes.at(903);
    each(y, [&](const Index& at) { store(y, at, load(as_x, at, as_x)); });
  }
  void apply(const Descriptor& o) {
    const Descriptor &x = *o.of(751), &y = *o.of(753);
    const int mode = o.of(750)->get<int>(0);
    const int axis = int(o.of(750)->get<int64_t>(9));
    if (o.get<float>(754) != 1 || o.get<float>(755) != 1) failed_ = true;
    each(y, [&](const Index& at) {
      const double a = mode == 501 ? 0 : load(x, at, y);
      const double b = o.has(752) ? load(*o.of(752), at, y) : 0;
      switch (mode) {
        case 0: return store(y, at, a + b);
        case 1: return store(y, at, a * b);
        case 6: return store(y, at, a / b);
        case 9: return store(y, at, a - b);
        case 13: return store(y, at, exp(a));
        case 15: return store(y, at, log(a));
        case 21: return store(y, at, a);
        case 303: return store(y, at, a >= b ? 1 : 0);
        case 501: return store(y, at, double(at.i[axis]));
        case 601: return store(y, at, load(*o.of(758), at, y) != 0 ? a : b);
        default: failed_ = true;
      }
    });
  }

 private:
  char* stored(const Descriptor& t) {
    char* const p = stored_.count(t.get<int64_t>(906)) ? stored_[t.get<int64_t>(906)] : nullptr;
    if (!p || (!t.get<bool>(908) && reinterpret_cast<uintptr_t>(p) % 16)) failed_ = true;
    return p;
  }
  std::vector<double>& between(const Descriptor& t) {
    std::vector<double>& v = between_[t.get<int64_t>(906)];
    if (!v.empty()) return v;
    int64_t n = 1;
    for (int d = 0; d < 4; d++) n += (size_of(t, d) - 1) * t.get<int64_t>(903, d);
    v.assign(size_t(n), NAN);
    return v;
  }

  std::map<int64_t, char*> stored_;
  std::map<int64_t, std::vector<double>> between_;
  bool failed_ = false;
};

}  // namespace

EXPORT size_t cudnnGetVersion() { return 91901; }
EXPORT void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes) text[0] = 0;
}
EXPORT int cudnnCreate(void** handle) {
  static int one;
  *handle = &one;
  return 0;
}
EXPORT int cudnnSetStream(void*, void*) { return 0; }
EXPORT int cudnnBackendCreateDescriptor(int kind, Descriptor** out) {
  *out = new Descriptor;
  (*out)->kind = kind;
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(Descriptor* d) {
  delete d;
  return 0;
}
EXPORT int cudnnBackendSetAttribute(Descriptor* d, int name, int type, int64_t n,
                                    const void* values) {
  // Bytes of handle, data type, bool, int64, float, double, pointer; of modes; of descriptors.
  static const std::map<int, size_t> kBytes = {{0, 8}, {1, 4}, {2, 1},  {3, 8},  {4, 4},
                                               {6, 8}, {8, 4}, {14, 4}, {15, 8}, {18, 4}};
  if (d->finished || !kBytes.count(type)) return kRefused;
  const char* const bytes = static_cast<const char*>(values);
  d->attributes[name] = {type, n, {bytes, bytes + size_t(n) * kBytes.at(type)}};
  return 0;
}
EXPORT int cudnnBackendFinalize(Descriptor* d) {
  if (!is_complete(*d)) return kRefused;
  if (d->kind == kPlan) {
    if (d->of(401)->choice == 0) return kRefused;
    sdpa_stub_plans++;
  }
  d->finished = true;
  return 0;
}
EXPORT int cudnnBackendGetAttribute(Descriptor* d, int name, int type, int64_t most, int64_t* n,
                                    void* values) {
  if (!d->finished) return kRefused;
  if (d->kind == kHeuristics && name == 202 && type == 15 && most >= 2) {
    for (int i = 0; i < 2; i++) {
      Descriptor* const config = static_cast<Descriptor**>(values)[i];
      config->choice = i;
      config->finished = true;
      config->attributes[201] = d->attributes.at(201);
    }
    *n = 2;
    return 0;
  }
  if (d->kind != kPlan || name != 402 || type != 3) return kRefused;
  *n = 1;
  memcpy(values, &kWork, sizeof kWork);
  return 0;
}
EXPORT int cudnnBackendExecute(void*, const Descriptor* plan, const Descriptor* pack) {
  const Descriptor& graph = *plan->of(401)->of(201);
  void* const work = pack->get<void*>(1003);
  if (!pack->finished || !work || pack->count(1000) != pack->count(1001)) return kRefused;
  sdpa_stub_calls++;
  if (sdpa_stub_refuses) return kRefused;
  memset(work, 0xff, kWork);
  Run run(*pack);
  for (int64_t i = 0; i < graph.count(801); i++) {
    const Descriptor& o = *graph.of(801, i);
    switch (o.kind) {
      case kMatmulOperation: run.multiply(o); break;
      case kReductionOperation: run.reduce(o); break;
      case kReshapeOperation: run.view(o); break;
      default: run.apply(o);
    }
  }
  return run.failed() ? kRefused : 0;
}
