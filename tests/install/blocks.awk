# blocks.awk - the code blocks of a document as one shell script a section.
#
# With section=HEADING: the commands below that heading, up to the next one of any level. A block of
# another language whose first line is a comment with a file's name becomes that file.
/^```/ {
    if (is_open) {
        if (is_file)
            print "END_OF_BLOCK"
        is_open = is_file = 0
    } else {
        is_open = is_first = 1
        language = substr($0, 4)
    }
    next
}
!is_open && /^#+ / {
    heading = $0
    sub(/^#+ /, "", heading)
    next
}
!is_open || heading != section { next }
language == "sh" { print; next }
is_first && /^(\/\/|#) [A-Za-z0-9_.\/-]+$/ {
    print "mkdir -p \"$(dirname " $2 ")\" && cat >" $2 " <<'END_OF_BLOCK'"
    is_file = 1
}
is_first && !is_file { print "echo 'a block of " language " names no file'; exit 1" }
{ is_first = 0 }
is_file
