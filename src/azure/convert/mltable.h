// Internal to `parallelrun convert`: an MLTable, the file that says of which files a table is made
// and how they are read. It lies in the folder that the input names, among the data, and is never
// data itself.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "azure/convert/bindings.h"

namespace parallelrun::azure {

struct MLTable {
  // Files below a folder of the input's volume, which stands for the folder of the MLTable, or for
  // the storage where the files lie in the cloud.
  struct Place {
    std::string path = ".";
    std::string pattern = {};  // below the path; empty: all
    std::string written = {};
  };
  std::vector<Place> places;
  api::InputKind kind =
      api::InputKind::kFiles;  // unless a transformation reads what is in the files
  std::vector<std::pair<std::string, std::string>> tabular;  // as Draft::tabular
  std::string partition_format;                              // below each path; empty: none
};

// `text`, the content of an MLTable; what cannot be carried over is reported at `field`. nullopt,
// reported, when it is not one.
std::optional<MLTable> ReadMLTable(std::string_view text, const std::string& field, Draft& draft);

// The one in the folder that `input` names. nullopt when it is not on this machine.
std::optional<MLTable> FindMLTable(const AzureInput& input, const ConvertOptions& options,
                                   Draft& draft);

// `data` once for each place of the table, on one volume; as it is when there is none to read. Of
// an input that is `of_table`, the MLTable is left out.
std::vector<DraftData> InputsOf(const std::optional<MLTable>& table, const DraftData& data,
                                bool of_table);

}  // namespace parallelrun::azure
