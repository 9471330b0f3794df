// Files of web/dist, embedded into the library at build time (embed.cmake).
#pragma once

#include <string_view>

namespace monet::page {

extern const std::string_view kTemplate; ///< report.html
extern const std::string_view kScript;   ///< report.js
extern const std::string_view kStyle;    ///< report.css

} // namespace monet::page
