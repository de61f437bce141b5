#include "heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace cli {
namespace {

using Colour = std::array<uint8_t, 3>;

constexpr Colour kNothing = {255, 255, 255};
constexpr int kCell = 24, kGap = 1, kMargin = 12;  // pixels

/// Dark blue through green to yellow. Lightness rises throughout, so it also reads in grey (after viridis).
Colour colour_of(double value) {
  if (value < 0) return kNothing;
  constexpr std::array<std::array<double, 3>, 5> kStops = {{{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
  const double at = std::clamp(value, 0., 1.) * (kStops.size() - 1);
  const auto low = std::min(static_cast<size_t>(at), kStops.size() - 2);
  Colour colour;
  for (size_t c = 0; c < 3; ++c)
    colour[c] = uint8_t(std::lround(kStops[low][c] + (at - double(low)) * (kStops[low + 1][c] - kStops[low][c])));
  return colour;
}

std::string cell_of(double value, const std::string& note) {
  const Colour c = colour_of(value);
  char text[160];
  std::snprintf(text, sizeof text, "<td style=\"background:#%02x%02x%02x;color:%s\" title=\"", c[0], c[1], c[2],
                value >= 0.5 || value < 0 ? "#000" : "#fff");
  char number[16] = "";
  if (value >= 0) std::snprintf(number, sizeof number, "%.2f", value);
  return text + note + "\">" + number + "</td>";
}

std::string big_endian(uint32_t x) { return {char(x >> 24), char(x >> 16), char(x >> 8), char(x)}; }

/// RFC 2083 requires a CRC-32 over kind and content.
std::string png_chunk(const std::string& kind, const std::string& content) {
  uint32_t crc = ~0U;
  for (const char byte : kind + content) {
    crc ^= uint8_t(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320U : 0U);
  }
  return big_endian(uint32_t(content.size())) + kind + content + big_endian(~crc);
}

/// A zlib stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4).
std::string stored_zlib(const std::string& bytes) {
  constexpr size_t kBlock = 65535;
  std::string stream = "\x78\x01";
  uint32_t a = 1, b = 0;  // Adler-32
  for (const char byte : bytes) a = (a + uint8_t(byte)) % 65521, b = (b + a) % 65521;
  for (size_t at = 0; at < bytes.size(); at += kBlock) {
    const size_t size = std::min(kBlock, bytes.size() - at);
    const auto complement = uint16_t(~size);
    stream += at + size == bytes.size() ? '\1' : '\0';
    stream += {char(size), char(size >> 8), char(complement), char(complement >> 8)};
    stream += bytes.substr(at, size);
  }
  return stream + big_endian(b << 16 | a);
}

}  // namespace

std::string html_of(const std::string& title, const std::string& text, const std::vector<HeatMap>& maps) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title +
                     "</title><style>body{font:14px sans-serif;margin:2em}table{border-collapse:separate;border-spacing:2px}"
                     "td{width:3.2em;height:2.4em;text-align:center}th{font-weight:normal;padding:0 .5em}</style></head>\n<body><h1>" +
                     title + "</h1>\n<p>" + text + "</p>\n";
  for (const HeatMap& map : maps) {
    page += "<h2>" + map.title + "</h2>\n<table><tr><th>" + map.row_name + " \\ " + map.column_name + "</th>";
    for (const std::string& column : map.columns) page += "<th>" + column + "</th>";
    page += "</tr>\n";
    for (size_t i = 0; i < map.rows.size(); ++i) {
      page += "<tr><th>" + map.rows[i] + "</th>";
      for (size_t j = 0; j < map.columns.size(); ++j) page += cell_of(map.values[i][j], map.notes[i][j]);
      page += "</tr>\n";
    }
    page += "</table>\n";
  }
  return page + "</body></html>\n";
}

std::string png_of(const std::vector<HeatMap>& maps) {
  size_t width = kMargin, height = 0;
  for (const HeatMap& map : maps) {
    width += map.columns.size() * kCell + kMargin;
    height = std::max(height, map.rows.size() * kCell + 2 * kMargin);
  }
  std::vector<Colour> pixels(width * height, kNothing);
  size_t left = kMargin;
  for (const HeatMap& map : maps) {
    for (size_t i = 0; i < map.rows.size() * kCell; ++i)
      for (size_t j = 0; j < map.columns.size() * kCell; ++j)
        if (i % kCell >= kGap && j % kCell >= kGap) pixels[(kMargin + i) * width + left + j] = colour_of(map.values[i / kCell][j / kCell]);
    left += map.columns.size() * kCell + kMargin;
  }
  std::string lines;
  for (size_t y = 0; y < height; ++y) {
    lines += '\0';  // no filter
    for (size_t x = 0; x < width; ++x)
      for (const uint8_t part : pixels[y * width + x]) lines += char(part);
  }
  const std::string eight_bits_rgb = {8, 2, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big_endian(uint32_t(width)) + big_endian(uint32_t(height)) + eight_bits_rgb) +
         png_chunk("IDAT", stored_zlib(lines)) + png_chunk("IEND", "");
}

}  // namespace cli
