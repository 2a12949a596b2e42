// The store in which processes find each other: a directory of files, or a table that rank 0 serves
// by TCP. Every wait ends with the timeout of the rendezvous. Failures are std::runtime_error.
#pragma once

#include "dist/engine.h"

#include <gloo/rendezvous/store.h>

#include <memory>
#include <string>

namespace TT_NS {

class Store : public gloo::rendezvous::Store {
 public:
  Store(const DistOpen& what);
  // Sets a key that nobody has set before; fails with the rank that it belongs to.
  void claim(const std::string& key, const std::string& value, int rank);
  std::string read(const std::string& key, int rank);  // waits for the key, which `rank` sets
  // Rank 0 waits until every process has called it and ends the store; the others wait for that.
  void finish();
  // An address of this machine that the other processes reach.
  virtual std::string local_address() const = 0;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override;

 protected:
  virtual bool put(const std::string& key, const std::string& value) = 0;  // false: it is there
  virtual bool find(const std::string& key, std::string* value) = 0;
  virtual void end() = 0;         // on rank 0, after all others have finished
  virtual void wait_for_end() {}  // on the others: the next store may be at the same place
  int64_t left_ns() const;
  [[noreturn]] void fail(const std::string& text) const;
  std::string place_;
  int rank_, size_;
  int64_t deadline_;
};

std::unique_ptr<Store> open_store(const DistOpen& what);

}  // namespace TT_NS
