/* References of comparisons and of logic. */

static double ref_eq(double a, double b) { return a == b; }
static double ref_ne(double a, double b) { return a != b; }
static double ref_lt(double a, double b) { return a < b; }
static double ref_le(double a, double b) { return a <= b; }
static double ref_gt(double a, double b) { return a > b; }
static double ref_ge(double a, double b) { return a >= b; }
static double ref_logical_not(double a) { return a == 0; }
static double ref_logical_and(double a, double b) { return a != 0 && b != 0; }
static double ref_logical_or(double a, double b) { return a != 0 || b != 0; }
static double ref_logical_xor(double a, double b) { return (a != 0) != (b != 0); }

static const Reference kCompare[] = {
    {"eq", .binary = ref_eq, .exact = 1},
    {"ne", .binary = ref_ne, .exact = 1},
    {"lt", .binary = ref_lt, .exact = 1},
    {"le", .binary = ref_le, .exact = 1},
    {"gt", .binary = ref_gt, .exact = 1},
    {"ge", .binary = ref_ge, .exact = 1},
    {"logical_not", .unary = ref_logical_not, .exact = 1},
    {"logical_and", .binary = ref_logical_and, .exact = 1},
    {"logical_or", .binary = ref_logical_or, .exact = 1},
    {"logical_xor", .binary = ref_logical_xor, .exact = 1},
};
