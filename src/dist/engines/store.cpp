#include "dist/engines/store.h"

#include <algorithm>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <map>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <time.h>
#include <unistd.h>

namespace TT_NS {

namespace {

constexpr uint32_t kMaxKey = 256;
constexpr uint32_t kMaxValue = 1 << 20;
constexpr uint32_t kAbsent = UINT32_MAX;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}
void pause_ms(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

std::string error_text(const std::string& what) { return what + ": " + strerror(errno); }

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// ---- a directory of files, one for each key ----

class FileStore : public Store {
 public:
  FileStore(const DistOpen& what, const std::string& path) : Store(what), path_(path) {
    if (mkdir(path.c_str(), 0700) && errno != EEXIST)
      fail(error_text("cannot make the directory " + path));
  }
  // The name of this machine where it has an address, else the loopback.
  std::string local_address() const override {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    addrinfo* found = nullptr;
    const bool known = name[0] && !getaddrinfo(name, nullptr, nullptr, &found);
    bool usable = false;
    for (addrinfo* a = known ? found : nullptr; a && !usable; a = a->ai_next) {
      const Descriptor s(socket(a->ai_family, SOCK_STREAM, 0));
      usable = s.get() >= 0 && !bind(s.get(), a->ai_addr, a->ai_addrlen);
    }
    if (known) freeaddrinfo(found);
    return usable ? name : "127.0.0.1";
  }

 protected:
  bool put(const std::string& key, const std::string& value) override {
    const std::string draft = file_of("draft" + std::to_string(rank_));
    unlink(draft.c_str());
    {
      const Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
      if (file.get() < 0) fail(error_text("cannot write " + draft));
      const ssize_t written = write(file.get(), value.data(), value.size());
      if (written != ssize_t(value.size())) {
        if (written >= 0) errno = ENOSPC;
        const std::string why = error_text("cannot write " + draft);
        unlink(draft.c_str());
        fail(why);
      }
    }
    const bool made = !link(draft.c_str(), file_of(key).c_str());
    const int error = errno;
    unlink(draft.c_str());
    if (made) return true;
    errno = error;
    if (error != EEXIST) fail(error_text("cannot write " + file_of(key)));
    return false;
  }
  bool find(const std::string& key, std::string* value) override {
    const Descriptor file(open(file_of(key).c_str(), O_RDONLY));
    if (file.get() < 0) {
      if (errno != ENOENT) fail(error_text("cannot read " + file_of(key)));
      return false;
    }
    char part[4096];
    value->clear();
    for (ssize_t n; (n = ::read(file.get(), part, sizeof part)) > 0;)
      value->append(part, size_t(n));
    return true;
  }
  void end() override {
    for (int r = 0; r < size_; r++)
      for (const char* prefix : {"", "size", "done"})
        unlink(file_of(prefix + std::to_string(r)).c_str());
    rmdir(path_.c_str());
  }

 private:
  std::string file_of(const std::string& key) const { return path_ + "/" + key; }
  std::string path_;
};

// ---- a table that rank 0 serves ----
// A request is {operation, length of the key, length of the value}, key, value. The answer to kPut
// is one byte; that to kFind is a length, kAbsent if there is none, and the value.

enum Operation : uint32_t { kPut = 1, kFind = 2 };
struct Header {
  uint32_t operation, key, value;
};

bool send_all(int fd, const void* data, size_t n) {
  const char* p = static_cast<const char*>(data);
  while (n) {
    const ssize_t k = ::send(fd, p, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k;
    n -= size_t(k);
  }
  return true;
}

class Server {
 public:
  // Listens on all addresses; a message about the failure is in *why.
  Server(const std::string& port, std::string* why) {
    if (pipe2(wake_, O_CLOEXEC)) {
      *why = error_text("cannot make a pipe");
      return;
    }
    listen_on(port, why);
    if (why->empty()) thread_ = std::thread([this] { run(); });
  }
  ~Server() {
    if (thread_.joinable()) {
      (void)!write(wake_[1], "", 1);
      thread_.join();
    }
    // First the port: a client whose connection ends may connect to the next store at once.
    listener_ = Descriptor(-1);
    clients_.clear();
    for (int fd : wake_)
      if (fd >= 0) ::close(fd);
  }

 private:
  struct Client {
    Descriptor socket;
    std::string input;
  };

  void listen_on(const std::string& port, std::string* why) {
    addrinfo hints = {};
    hints.ai_flags = AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    for (int family : {AF_INET6, AF_INET}) {
      hints.ai_family = family;
      addrinfo* found = nullptr;
      if (getaddrinfo(nullptr, port.c_str(), &hints, &found)) continue;
      Descriptor s(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      const int off = 0;
      bool listens = s.get() >= 0;
      if (listens) {
        setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (family == AF_INET6) setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        listens = !bind(s.get(), found->ai_addr, found->ai_addrlen) && !listen(s.get(), 1024);
      }
      freeaddrinfo(found);
      if (listens) {
        listener_ = std::move(s);
        why->clear();
        return;
      }
      *why = error_text("cannot listen on port " + port);
    }
    if (why->empty()) *why = "there is no port " + port;
  }

  void run() {
    for (;;) {
      std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& c : clients_) fds.push_back({c.socket.get(), POLLIN, 0});
      if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
      if (fds[0].revents) return;
      std::vector<Client> kept;
      for (size_t i = 0; i < clients_.size(); i++)
        if (!fds[i + 2].revents || serve(clients_[i])) kept.push_back(std::move(clients_[i]));
      clients_ = std::move(kept);
      if (!fds[1].revents) continue;
      Descriptor s(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (s.get() >= 0) clients_.push_back({std::move(s), {}});
    }
  }

  // Reads what there is and answers whole requests; false: the client is gone.
  bool serve(Client& c) {
    char part[8192];
    const ssize_t n = recv(c.socket.get(), part, sizeof part, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    c.input.append(part, size_t(n));
    Header h;
    while (c.input.size() >= sizeof h) {
      memcpy(&h, c.input.data(), sizeof h);
      if (h.key > kMaxKey || h.value > kMaxValue) return false;
      const size_t whole = sizeof h + h.key + h.value;
      if (c.input.size() < whole) return true;
      const std::string key = c.input.substr(sizeof h, h.key);
      if (!answer(c, h.operation, key, c.input.substr(sizeof h + h.key, h.value))) return false;
      c.input.erase(0, whole);
    }
    return true;
  }
  bool answer(Client& c, uint32_t operation, const std::string& key, const std::string& value) {
    if (operation == kPut) {
      const char made = table_.emplace(key, value).second;
      return send_all(c.socket.get(), &made, 1);
    }
    const auto at = table_.find(key);
    const bool there = at != table_.end();
    const uint32_t length = there ? uint32_t(at->second.size()) : kAbsent;
    return send_all(c.socket.get(), &length, sizeof length) &&
           (!there || send_all(c.socket.get(), at->second.data(), length));
  }

  int wake_[2] = {-1, -1};
  Descriptor listener_;
  std::vector<Client> clients_;
  std::map<std::string, std::string> table_;
  std::thread thread_;
};

class TcpStore : public Store {
 public:
  TcpStore(const DistOpen& what, const std::string& host, const std::string& port) : Store(what) {
    if (!rank_) {
      std::string why;
      server_ = std::make_unique<Server>(port, &why);
      if (!why.empty()) fail(why);
    }
    std::string why;
    while (!connect_to(host, port, &why)) {
      if (left_ns() <= 0) fail("rank 0 does not answer (" + why + ")");
      pause_ms(10);
    }
  }
  std::string local_address() const override { return local_; }

 protected:
  bool put(const std::string& key, const std::string& value) override {
    request(kPut, key, value);
    char made = 0;
    receive(&made, 1);
    return made;
  }
  bool find(const std::string& key, std::string* value) override {
    request(kFind, key, "");
    uint32_t length = 0;
    receive(&length, sizeof length);
    if (length == kAbsent) return false;
    if (length > kMaxValue) fail("rank 0 does not speak tt's protocol");
    value->resize(length);
    receive(value->data(), length);
    return true;
  }
  void end() override { server_.reset(); }
  void wait_for_end() override {
    char none;
    pollfd fd = {socket_.get(), POLLIN, 0};
    while (left_ns() > 0) {
      if (poll(&fd, 1, 50) > 0 && recv(socket_.get(), &none, 1, MSG_DONTWAIT) <= 0) return;
    }
  }

 private:
  bool connect_to(const std::string& host, const std::string& port, std::string* why) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) {
      *why = gai_strerror(error);
      return false;
    }
    bool connected = false;
    for (addrinfo* a = found; a && !connected; a = a->ai_next) {
      Descriptor s(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      connected = s.get() >= 0 && !connect(s.get(), a->ai_addr, a->ai_addrlen);
      if (connected) socket_ = std::move(s);
      else *why = strerror(errno);
    }
    freeaddrinfo(found);
    if (!connected) return false;
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_storage me;
    socklen_t length = sizeof me;
    char text[NI_MAXHOST] = "127.0.0.1";
    if (!getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&me), &length))
      getnameinfo(reinterpret_cast<sockaddr*>(&me), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST);
    local_ = text;
    return true;
  }
  void request(uint32_t operation, const std::string& key, const std::string& value) {
    const Header h = {operation, uint32_t(key.size()), uint32_t(value.size())};
    std::string all(reinterpret_cast<const char*>(&h), sizeof h);
    all += key + value;
    if (!send_all(socket_.get(), all.data(), all.size())) fail("rank 0 has closed the connection");
  }
  void receive(void* out, size_t n) {
    char* p = static_cast<char*>(out);
    while (n) {
      pollfd fd = {socket_.get(), POLLIN, 0};
      const int64_t left = left_ns() / 1000000;
      if (left <= 0 || !poll(&fd, 1, int(std::min<int64_t>(left, 1000000))))
        fail("rank 0 does not answer");
      const ssize_t k = recv(socket_.get(), p, n, 0);
      if (k < 0 && errno == EINTR) continue;
      if (k <= 0) fail("rank 0 has closed the connection");
      p += k;
      n -= size_t(k);
    }
  }
  std::unique_ptr<Server> server_;
  Descriptor socket_;
  std::string local_;
};

}  // namespace

// ---- what both have in common ----

Store::Store(const DistOpen& what)
    : place_(what.rendezvous),
      rank_(what.rank),
      size_(what.size),
      deadline_(now_ns() + what.timeout_ns) {}

int64_t Store::left_ns() const { return deadline_ - now_ns(); }

void Store::fail(const std::string& text) const {
  throw std::runtime_error("rendezvous at " + place_ + ": " + text);
}

void Store::claim(const std::string& key, const std::string& value, int rank) {
  if (!put(key, value))
    fail("there is a rank " + std::to_string(rank) + " already, or one is left of an earlier run");
}

std::string Store::read(const std::string& key, int rank) {
  std::string value;
  for (int64_t ms = 1; !find(key, &value); ms = std::min<int64_t>(50, ms * 2)) {
    if (left_ns() <= 0) fail("rank " + std::to_string(rank) + " has not come in time");
    pause_ms(ms);
  }
  return value;
}

void Store::finish() {
  claim("done" + std::to_string(rank_), "1", rank_);
  if (rank_) return wait_for_end();
  for (int r = 0; r < size_; r++) read("done" + std::to_string(r), r);
  end();
}

void Store::set(const std::string& key, const std::vector<char>& data) {
  claim(key, std::string(data.begin(), data.end()), rank_);
}
std::vector<char> Store::get(const std::string& key) {
  const std::string value = read(key, atoi(key.c_str()));  // Gloo's keys are ranks
  return {value.begin(), value.end()};
}
void Store::wait(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) read(key, atoi(key.c_str()));
}
void Store::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) {
  wait(keys);
}

std::unique_ptr<Store> open_store(const DistOpen& what) {
  const std::string place = what.rendezvous;
  if (place.rfind("file://", 0) == 0) return std::make_unique<FileStore>(what, place.substr(7));
  const size_t colon = place.rfind(':');
  if (place.rfind("tcp://", 0) || colon < 7 || colon == std::string::npos)
    throw std::runtime_error("rendezvous is \"" + place +
                             "\": must be tcp://host:port or file:///path");
  std::string host = place.substr(6, colon - 6);
  if (host.size() > 2 && host[0] == '[') host = host.substr(1, host.size() - 2);
  return std::make_unique<TcpStore>(what, host, place.substr(colon + 1));
}

}  // namespace TT_NS
