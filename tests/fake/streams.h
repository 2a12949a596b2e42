// Streams of the fake devices. Work runs when it is enqueued, or late: as late as an order allows
// that CUDA may choose, too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <functional>

namespace fake {

struct Stream;
struct Event;

// 0: work runs at once; 1: only when someone waits for it; more: the seed of an order.
void set_late(uint64_t order);
bool is_late();

Stream* new_stream(int32_t device);
void free_stream(Stream* s);  // work that it has is done later
Stream* default_stream(int32_t device);
// Runs body() after what the stream has to do so far. NULL: the device's default stream.
void enqueue(int32_t device, Stream* s, std::function<void()> body);
// The same for work that waits for other threads or processes: step() is called until it returns
// true, and other work of this process goes on meanwhile, as on the streams of a device.
void enqueue_steps(Stream* s, std::function<bool()> step);
// Whether work of the stream runs later than it is enqueued.
bool is_later(Stream* s);
int32_t device_of(Stream* s);
void fail_later(int32_t device, int32_t status);  // of work: the host hears of it as it waits
bool is_done(int32_t device, Stream* s);
void wait(int32_t device, Stream* s);
void wait_device(int32_t device);

Event* new_event();
void free_event(Event* e);
void record(int32_t device, Event* e, Stream* s);
void let_wait(int32_t device, Stream* s, Event* e);
bool has_happened(Event* e);
void wait(Event* e);
double time_of(Event* e);  // milliseconds

// Work that is recorded in place of being run, and runs as one piece. As in CUDA, waiting for a
// stream, its events and allocating memory end a recording.
struct Graph;
bool begin_capture(Stream* s);  // false: one is running
Graph* end_capture(Stream* s);  // NULL: none was running, or it had ended
bool is_capturing(Stream* s);   // NULL: any
void spoil_captures();
void launch_graph(Graph* g, Stream* s);
void free_graph(Graph* g);
int64_t graph_launches();

}  // namespace fake
