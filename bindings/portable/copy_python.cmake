# What is no binary of the package's, from the build's folder to the wheel's.
file(GLOB files ${FROM}/*.py ${FROM}/py.typed ${FROM}/headers.json)
file(COPY ${files} DESTINATION ${TO})
