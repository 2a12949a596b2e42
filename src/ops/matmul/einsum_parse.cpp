#include "ops/matmul/einsum_parse.h"

#include "base/error.h"

namespace TT_NS {

namespace {

class Parser {
 public:
  Parser(Str text, int64_t n_operands) : text_(text), n_(n_operands) {}

  Equation run() {
    e_.terms.push_back(Labels());
    bool arrow = false;
    for (; skip_spaces(); at_++) {
      if (text_[at_] == ',') {
        if (e_.terms.size() == n_) fail_here("more terms than operands");
        e_.terms.push_back(Labels());
      } else if (text_[at_] == '-') {
        if (at_ + 1 >= text_.n || text_[at_ + 1] != '>') fail_here("'-' must be followed by '>'");
        at_ += 2;
        arrow = true;
        break;
      } else {
        e_.terms.back().push_back(label(e_.terms.back()));
      }
    }
    if (e_.terms.size() != n_) fail_here("fewer terms than operands");
    count();
    if (arrow) result();
    else implied();
    return std::move(e_);
  }

 private:
  bool skip_spaces() {
    while (at_ < text_.n && text_[at_] == ' ') at_++;
    return at_ < text_.n;
  }
  [[noreturn]] TT_COLD void fail_here(const char* rule) {
    fail_arg(TT_INVALID_ARG, "equation", "equation is '{}' for {} operands: at position {}: {}",
             text_, n_, at_, rule);
  }

  // Returns the label at at_, and moves at_ to its last character.
  uint8_t label(const Labels& before) {
    const char ch = text_[at_];
    if (before.size() == kMaxDims) fail_here("more labels than a tensor can have dimensions");
    if (ch >= 'A' && ch <= 'Z') return uint8_t(ch - 'A');
    if (ch >= 'a' && ch <= 'z') return uint8_t(ch - 'a' + 26);
    if (ch != '.') fail_here("labels are letters or '...'");
    if (at_ + 2 >= text_.n || text_[at_ + 1] != '.' || text_[at_ + 2] != '.')
      fail_here("an ellipsis has three dots");
    for (uint8_t l : before)
      if (l == kEllipsis) fail_here("a second ellipsis in one term");
    at_ += 2;
    return kEllipsis;
  }

  void count() {
    for (const Labels& term : e_.terms)
      for (uint8_t l : term) seen_[l]++;
  }
  void result() {
    for (; skip_spaces(); at_++) {
      const uint8_t l = label(e_.out);
      for (uint8_t earlier : e_.out)
        if (earlier == l) fail_here("the label appears twice in the result");
      if (l != kEllipsis && !seen_[l]) fail_here("the result's label is in no term");
      e_.out.push_back(l);
    }
  }
  void implied() {
    if (seen_[kEllipsis]) e_.out.push_back(kEllipsis);
    for (uint8_t l = 0; l < kLetters; l++)
      if (seen_[l] == 1) e_.out.push_back(l);
  }

  Str text_;
  int64_t n_, at_ = 0;
  Equation e_;
  int64_t seen_[kLetters + 1] = {};
};

}  // namespace

Equation parse_equation(Str text, int64_t n_operands) { return Parser(text, n_operands).run(); }

}  // namespace TT_NS
