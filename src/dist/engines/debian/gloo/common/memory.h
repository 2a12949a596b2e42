// Gloo's pointers to objects that end before their operations do. Debian's libgloo-dev installs
// headers that include this one, but not this one; names and members are those of its libgloo.
#pragma once

#include <memory>
#include <thread>

namespace gloo {

template <typename T> class WeakNonOwningPtr;
template <typename T> class ShareableNonOwningPtr;

// While it exists, the end of the object waits.
template <typename T> class NonOwningPtr final {
 public:
  NonOwningPtr() {}
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& p) : ptr_(p.ptr_.lock()) {}
  T* operator->() const noexcept { return ptr_.get(); }
  explicit operator bool() const noexcept { return bool(ptr_); }

 private:
  std::shared_ptr<T> ptr_;
};

template <typename T> class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() {}
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& p) : ptr_(p.ptr_) {}
  // Whether it has pointed to an object, which may have ended.
  explicit operator bool() const noexcept {
    const std::weak_ptr<T> none;
    return ptr_.owner_before(none) || none.owner_before(ptr_);
  }

 protected:
  std::weak_ptr<T> ptr_;
  friend class NonOwningPtr<T>;
};

// A member of the object.
template <typename T> class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* t) : ptr_(t, [](void*) {}) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;
  ~ShareableNonOwningPtr() {
    const std::weak_ptr<T> weak(ptr_);
    ptr_.reset();
    while (!weak.expired()) std::this_thread::yield();
  }

 protected:
  std::shared_ptr<T> ptr_;
  friend class WeakNonOwningPtr<T>;
};

}  // namespace gloo
