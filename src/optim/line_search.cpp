#include "optim/line_search.h"

#include "base/arith.h"

#include <math.h>

namespace TT_NS {

constexpr double kDecrease = 1e-4;  // the first Wolfe condition
constexpr double kFlatness = 0.9;   // the second
constexpr double kNarrow = 1e-9;    // a bracket whose ends differ less is not divided
constexpr int kRounds = 25;

// Returns where the cubic through two probes has its minimum, within [low, high].
static double cubic_minimum(const Probe& a, const Probe& b, double low, double high) {
  const double x1 = a.length;
  const double x2 = b.length;
  const double d1 = a.slope + b.slope - 3 * ((a.loss - b.loss) / (x1 - x2));
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = sqrt(square);
  double place;
  if (x1 <= x2) {
    place = x2 - (x2 - x1) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
  } else {
    place = x1 - (x1 - x2) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  }
  if (low > place) place = low;
  return high < place ? high : place;
}

// Two lengths between which a step is that meets both conditions.
class WolfeSearch {
 public:
  explicit WolfeSearch(const Line& line) : line_(line) {}
  Probe run(double length);

 private:
  Probe probe(double length) { return line_.at(line_.with, length); }
  bool too_high(const Probe& p) const {
    return p.loss > line_.start.loss + kDecrease * p.length * line_.start.slope;
  }
  bool flat(const Probe& p) const { return fabs(p.slope) <= -kFlatness * line_.start.slope; }
  void order() {
    low_ = bracket_[0].loss <= bracket_[1].loss ? 0 : 1;
    high_ = 1 - low_;
  }
  bool enclose(double length);
  double divided(bool* stuck) const;
  void narrow();

  const Line& line_;
  Probe bracket_[2];
  int low_ = 0;  // the end with the lower loss
  int high_ = 1;
  int rounds_ = 0;
};

// Goes on until two lengths enclose a good one. Returns true if one was found on the way: it is
// bracket_[0].
bool WolfeSearch::enclose(double length) {
  Probe before = line_.start;
  Probe here = probe(length);
  for (; rounds_ < kRounds; rounds_++) {
    const bool rises = too_high(here) || (rounds_ > 1 && here.loss >= before.loss);
    if (!rises && flat(here)) {
      bracket_[0] = here;
      return true;
    }
    if (rises || here.slope >= 0) {
      bracket_[0] = before;
      bracket_[1] = here;
      return false;
    }
    const double low = here.length + 0.01 * (here.length - before.length);
    const double next = cubic_minimum(before, here, low, here.length * 10);
    before = here;
    here = probe(next);
  }
  bracket_[0] = line_.start;
  bracket_[1] = here;
  return false;
}

// Returns the length by which the bracket is divided next. `stuck`: the last one was near an end.
double WolfeSearch::divided(bool* stuck) const {
  const double left = min(bracket_[0].length, bracket_[1].length);
  const double right = max(bracket_[0].length, bracket_[1].length);
  const double length = cubic_minimum(bracket_[0], bracket_[1], left, right);
  const double margin = 0.1 * (right - left);
  if (!(min(right - length, length - left) < margin)) {
    *stuck = false;
    return length;
  }
  if (!*stuck && length < right && length > left) {
    *stuck = true;
    return length;
  }
  *stuck = false;
  return fabs(length - right) < fabs(length - left) ? right - margin : left + margin;
}

void WolfeSearch::narrow() {
  bool stuck = false;
  for (; rounds_ < kRounds; rounds_++) {
    if (fabs(bracket_[1].length - bracket_[0].length) * line_.largest < kNarrow) return;
    Probe here = probe(divided(&stuck));
    if (too_high(here) || here.loss >= bracket_[low_].loss) {
      bracket_[high_] = here;
      order();
      continue;
    }
    const bool done = flat(here);
    if (!done && here.slope * (bracket_[high_].length - bracket_[low_].length) >= 0)
      bracket_[high_] = bracket_[low_];
    bracket_[low_] = here;
    if (done) return;
  }
}

Probe WolfeSearch::run(double length) {
  if (enclose(length)) return bracket_[0];
  order();
  narrow();
  return bracket_[low_];
}

Probe strong_wolfe(const Line& line, double length) { return WolfeSearch(line).run(length); }

}  // namespace TT_NS
