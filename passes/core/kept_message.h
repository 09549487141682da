// Messages that are kept in text files from one run of the program to the next.
#ifndef FUSELAGE_PASSES_CORE_KEPT_MESSAGE_H_
#define FUSELAGE_PASSES_CORE_KEPT_MESSAGE_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace fuselage::passes {

// 16 hexadecimal digits (see Fingerprint of a tensor).
std::string TextFingerprint(const std::string& text);

// As a text proto.
std::string TextOf(const google::protobuf::Message& message);

// InvalidArgument: "<line>:<column>: " and the text's first error.
absl::Status ParseText(const std::string& text, google::protobuf::Message* message);

// `message` has a string field `fingerprint`, of its other fields, which KeepMessage fills in.
//
// NotFound: there is no such file. DataLoss says what is wrong with one that cannot be believed.
absl::Status ReadKeptMessage(const std::string& path, google::protobuf::Message* message);

// Makes the folder; a reader sees the whole file or none.
absl::Status KeepMessage(const std::string& path, google::protobuf::Message* message);

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_KEPT_MESSAGE_H_
