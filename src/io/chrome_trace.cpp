#include "io/chrome_trace.h"

#include "base/os.h"
#include "base/text/utf8.h"
#include "io/files.h"
#include "modes/profiler.h"

namespace TT_NS {

namespace {

constexpr int64_t kBuffer = 1 << 16;

// Categories by EventKind; PyTorch's where it has one.
constexpr const char* kCategories[] = {"",          "cpu_op",          "kernel",
                                       "module",    "autograd_node",   "cpu_instant_event",
                                       "optimizer", "user_annotation", "communication"};

class TraceWriter {
 public:
  TraceWriter(const char* path, int64_t now_ns) : file_(path), now_ns_(now_ns) {}
  void write(Span<const ProfileEvent> events);

 private:
  void head();
  void add(const ProfileEvent& e);
  void add_memory(const ProfileEvent& e);
  void add_shapes(const ProfileEvent& e);
  void add_us(int64_t ns);
  void add_member(const char* name, int64_t value) { text_.add(name).add(value); }
  void flush();

  NewFile file_;
  int64_t now_ns_;  // the end of events that still run
  Text text_;       // not written yet
};

void TraceWriter::flush() {
  file_.write(text_.c_str(), text_.size());
  text_.cut(0);
}

// Microseconds, with three decimals.
void TraceWriter::add_us(int64_t ns) {
  const int64_t rest = ns % 1000;
  text_.add(ns / 1000).add(".");
  if (rest < 100) text_.add("0");
  if (rest < 10) text_.add("0");
  text_.add(rest);
}

void TraceWriter::add_shapes(const ProfileEvent& e) {
  text_.add(",\"Input Dims\":[");
  for (int32_t i = 0; i < e.n_shapes;) {
    const int64_t ndim = e.shapes[i++];
    text_.add(i > 1 ? ",[" : "[");
    for (int64_t d = 0; d < ndim; d++) {
      if (d) text_.add(",");
      text_.add(e.shapes[i++]);
    }
    text_.add("]");
  }
  text_.add("]");
}

void TraceWriter::add_memory(const ProfileEvent& e) {
  add_member(
      ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":",
      os_pid());
  text_.add(",\"tid\":1,\"ts\":");
  add_us(e.begin_ns);
  add_member(",\"args\":{\"Device Type\":0,\"Device Id\":-1,\"Bytes\":", e.bytes);
  add_member(",\"Total Allocated\":", e.held);
  add_member("}},\n{\"ph\":\"C\",\"name\":\"memory\",\"pid\":", os_pid());
  text_.add(",\"ts\":");
  add_us(e.begin_ns);
  add_member(",\"args\":{\"bytes\":", e.held);
  text_.add("}}");
}

void TraceWriter::add(const ProfileEvent& e) {
  if (e.kind == EventKind::kMemory) return add_memory(e);
  text_.add(",\n{\"ph\":\"X\",\"cat\":\"").add(kCategories[int(e.kind)]).add("\",\"name\":");
  add_json_string(text_, {e.name, int64_t(strlen(e.name))});
  add_member(",\"pid\":", os_pid());
  const bool beside = e.kind == kCommunication;  // on a thread of tt
  add_member(",\"tid\":", beside ? 2 : 1);
  text_.add(",\"ts\":");
  add_us(e.begin_ns);
  text_.add(",\"dur\":");
  add_us(max<int64_t>(0, (e.end_ns ? e.end_ns : now_ns_) - e.begin_ns));
  add_member(",\"args\":{\"Ev Idx\":", e.id);
  if (e.parent) add_member(",\"parent\":", e.parent);
  if (e.bytes) add_member(",\"bytes\":", e.bytes);
  if (e.flops > 0) {
    text_.add(",\"flops\":");
    text_.add_double(e.flops);
  }
  if (e.n_shapes) add_shapes(e);
  text_.add("}}");
}

void TraceWriter::head() {
  add_member(
      "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":",
      os_pid());
  text_.add(",\"args\":{\"name\":\"tt\"}}");
}

void TraceWriter::write(Span<const ProfileEvent> events) {
  head();
  for (const ProfileEvent& e : events) {
    add(e);
    if (text_.size() > kBuffer) flush();
  }
  text_.add("\n]}\n");
  flush();
  file_.commit();
}

}  // namespace

void save_chrome_trace(const char* path, Ctx& c) {
  SmallVec<ProfileEvent, 1> events;
  events.resize(profiler_num_events(c), ProfileEvent());
  const int64_t n = profiler_events(c, events.mut());
  TraceWriter(path, os_now_ns()).write({events.data(), n});
}

}  // namespace TT_NS
