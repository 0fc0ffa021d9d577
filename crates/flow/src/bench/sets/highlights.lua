local count = 0
for found in output:gmatch("%*([^\n*]*)%*") do
  if found:find("%S") then count = count + 1 end
end
for found in output:gmatch("%*%*([^\n*]*)%*%*") do
  if found:find("%S") then count = count + 1 end
end
if count >= wanted then return { valid = true, score = 1 } end
return { valid = false, score = count / wanted, errors = { { message = "there are " .. count .. " highlighted sections, at least " .. wanted .. " are required, like *this*" } } }
