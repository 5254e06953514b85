# Doxygen's INPUT_FILTER: plain comments before declarations, and behind members, become those that it reads. Text that
# it would take for a command or a tag is escaped.
function escaped(text) {
  gsub(/[\\@<>#&$%]/, "\\\\&", text)
  while (match(text, /`[^`]+`/)) {  # names
    text = substr(text, 1, RSTART - 1) "<tt>" substr(text, RSTART + 1, RLENGTH - 2) "</tt>" substr(text, RSTART + RLENGTH)
  }
  return text
}
match($0, /^ *\/\//) {
  if (FNR == 1) print "/// @file"
  print substr($0, 1, RLENGTH) "/" escaped(substr($0, RLENGTH + 1))
  next
}
match($0, /[;,] +\/\/ /) {
  print substr($0, 1, RSTART) " ///< " escaped(substr($0, RSTART + RLENGTH))
  next
}
{ print }
