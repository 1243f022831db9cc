// Stands in for the half-precision library of TileLang's header, 5,500 lines that take g++ seconds to read, in kernels
// that use no half precision: only the name is declared, so a kernel that does use it does not compile with this and is
// built without it.
#define HALF_HALF_HPP
#include <cmath>
namespace half_float {
class half;
}
