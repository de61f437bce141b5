# Copies the package's files other than binaries from the build folder to the wheel folder.
file(GLOB files ${FROM}/*.py ${FROM}/py.typed ${FROM}/headers.json)
file(COPY ${files} DESTINATION ${TO})
